"""The same numbers for the torch code and for its NumPy twin."""

import numpy as np
import pytest
import torch

from tformer.nn import SinusoidalPositionalEncoding
from tformer.reference import from_torch

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def to_numpy(x):
    return x.detach().numpy().copy() if isinstance(x, torch.Tensor) else x


class Parity:
    """Draws numbers, and holds what torch makes of them to what the twin makes."""

    def __init__(self, dtype="float64", seed=0):
        self.dtype = getattr(torch, dtype)
        self.generator = torch.Generator().manual_seed(seed)

    def numbers(self, *shape):
        wide = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        return wide.to(self.dtype)

    def mask(self, *shape, share=0.6):
        return torch.rand(shape, generator=self.generator) < share

    def ids(self, vocab_size, *shape):
        return torch.randint(vocab_size, shape, generator=self.generator)

    @torch.no_grad()
    def module(self, module):
        """Give every weight a number of its own, gains and biases of norms too."""
        for name, parameter in module.named_parameters():
            drawn = self.numbers(*parameter.shape)
            if parameter.ndim > 1:
                drawn = drawn / parameter.shape[1] ** 0.5
            elif name.endswith("weight"):
                drawn = 1 + 0.3 * drawn
            parameter.copy_(drawn)
        module = module.to(self.dtype).eval()
        for part in module.modules():  # which rounds its table to float32
            if isinstance(part, SinusoidalPositionalEncoding):
                part._table = part.make_table(20)
        return module

    def twin_of(self, module):
        """Give a module numbers of its own, and make its twin."""
        module = self.module(module)
        return from_torch(module), module

    @torch.no_grad()
    def same(self, twin, original, *args, tolerance=None, **options):
        """Call both with the same inputs; they stay, and both return the same."""
        given = [to_numpy(x) for x in args]
        named = {name: to_numpy(x) for name, x in options.items()}
        ours, theirs = twin(*given, **named), original(*args, **options)
        self.equal(ours, theirs, tolerance)
        options |= dict(enumerate(args))
        for name, x in (named | dict(enumerate(given))).items():
            np.testing.assert_array_equal(x, to_numpy(options[name]))
        return ours

    def equal(self, twin, original, tolerance=None):
        """Compare arrays with tensors, or tuples of them, dtype and shape too."""
        if isinstance(original, tuple):
            assert len(twin) == len(original) > 0
            for one, other in zip(twin, original, strict=True):
                self.equal(one, other, tolerance)
            return
        assert isinstance(twin, np.ndarray)
        assert str(twin.dtype) == str(original.dtype).removeprefix("torch.")
        assert twin.shape == tuple(original.shape)
        if not original.is_floating_point():
            tolerance = 0
        elif tolerance is None:
            tolerance = TOLERANCE[self.dtype]
        np.testing.assert_allclose(twin, to_numpy(original), rtol=0, atol=tolerance)


@pytest.fixture(params=["float64", "float32"])
def parity(request):
    return Parity(request.param)


@pytest.fixture
def exact():
    return Parity()
