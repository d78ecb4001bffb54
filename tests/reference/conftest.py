"""The same numbers for the torch code and for its NumPy twin."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tformer.reference import from_torch

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


class Parity:
    """Draws pairs of array and tensor, and holds what comes out side by side."""

    def __init__(self, dtype: str = "float64", seed: int = 0) -> None:
        self.dtype = dtype
        self.random = np.random.default_rng(seed)

    def numbers(self, *shape: int) -> tuple[np.ndarray, torch.Tensor]:
        array = self.random.standard_normal(shape).astype(self.dtype)
        return array, torch.tensor(array)

    def mask(self, *shape: int, share: float = 0.6) -> tuple[np.ndarray, torch.Tensor]:
        array = self.random.random(shape) < share
        return array, torch.tensor(array)

    def ids(self, vocab_size: int, *shape: int) -> tuple[np.ndarray, torch.Tensor]:
        array = self.random.integers(vocab_size, size=shape)
        return array, torch.tensor(array)

    def module(self, module: torch.nn.Module) -> Any:
        """Give every weight a number of its own, gains and biases of norms too."""
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                drawn = self.random.standard_normal(tuple(parameter.shape))
                if parameter.ndim > 1:
                    drawn = drawn / parameter.shape[1] ** 0.5
                elif name.endswith("weight"):
                    drawn = 1 + 0.3 * drawn
                parameter.copy_(torch.tensor(drawn))
        return module.to(getattr(torch, self.dtype)).eval()

    def twin_of(self, make: Callable[[], torch.nn.Module]) -> tuple[Any, Any]:
        """Make a module with numbers of its own, and its twin."""
        module = self.module(make())
        return from_torch(module), module

    def same(self, twin: Any, original: Any, tolerance: float | None = None) -> None:
        """Compare arrays with tensors, or two nests of them, dtype and shape too."""
        if isinstance(original, tuple):
            assert isinstance(twin, tuple)
            assert len(twin) == len(original) > 0
            for one, other in zip(twin, original, strict=True):
                self.same(one, other, tolerance)
            return
        assert isinstance(twin, np.ndarray)
        whole = original.dtype in (torch.bool, torch.int8, torch.int64)
        wanted = str(original.dtype).removeprefix("torch.") if whole else self.dtype
        assert str(twin.dtype) == wanted
        assert twin.shape == tuple(original.shape)
        tolerance = TOLERANCE[self.dtype] if tolerance is None else tolerance
        if whole:
            tolerance = 0
        np.testing.assert_allclose(
            twin, original.detach().numpy(), rtol=0, atol=tolerance
        )


@pytest.fixture(params=list(TOLERANCE))
def parity(request: pytest.FixtureRequest) -> Parity:
    return Parity(request.param)


@pytest.fixture(scope="session")
def new_parity() -> type[Parity]:
    """For tests of Hypothesis, which draw anew within one test."""
    return Parity
