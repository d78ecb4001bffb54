"""What the tests of the package share."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from torch import nn

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
