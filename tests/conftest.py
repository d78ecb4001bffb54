"""What the tests of the package share."""

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from torch import Tensor, nn

import tformer

hypothesis.settings.register_profile(
    "package", max_examples=20, deadline=None, database=None, derandomize=True
)
hypothesis.settings.load_profile("package")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def float64() -> Iterator[None]:
    """Draw numbers and make modules in double precision."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def raises() -> Callable[[type[Exception], str], Any]:
    """Expect exactly this kind of error with exactly this message."""

    @contextlib.contextmanager
    def check(kind: type[Exception], message: str) -> Iterator[None]:
        with pytest.raises(kind) as caught:
            yield
        assert type(caught.value) is kind
        assert str(caught.value) == message

    return check


@pytest.fixture
def randomised() -> Callable[[nn.Module], Any]:
    """Give every bias and gain a number of its own, so that no swap goes unseen."""

    def randomise(module: nn.Module) -> nn.Module:
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn_like(parameter) / 4)
        return module

    return randomise


@pytest.fixture
def attend_slowly() -> Callable[..., tuple[Tensor, Tensor]]:
    """Attention as its definition says, one query and one key at a time."""

    def attend(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        *,
        bias: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
        softcap: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
        full = (B, H, T, S)
        allowed = (torch.tensor(True) if attn_mask is None else attn_mask).expand(full)
        added = (torch.tensor(0.0) if bias is None else bias).expand(full)
        weights = torch.zeros(full, dtype=query.dtype)
        output = torch.zeros(B, H, T, value.shape[-1], dtype=query.dtype)
        for b, h, t in torch.cartesian_prod(*map(torch.arange, full[:3])).tolist():
            g = h // (H // G)
            exponentials = []
            for s in range(S):
                score = float(query[b, h, t] @ key[b, g, s])
                score *= Dh**-0.5 if scale is None else scale
                if softcap is not None:
                    score = softcap * math.tanh(score / softcap)
                score += float(added[b, h, t, s])
                seen = allowed[b, h, t, s] and not (is_causal and s > t + S - T)
                exponentials.append(math.exp(score) if seen else 0.0)
            total = sum(exponentials)
            if total:
                weights[b, h, t] = torch.tensor(exponentials) / total
                output[b, h, t] = weights[b, h, t] @ value[b, g]
        return output, weights

    return attend


@pytest.fixture(scope="session")
def fresh() -> Callable[..., str]:
    """Run code in a new process, and return what it prints."""

    def run(code: str, *arguments: str) -> str:
        root = Path(tformer.__file__).parents[1]
        process = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        )
        assert process.returncode == 0, process.stderr
        return process.stdout.strip()

    return run
