import numpy as np
import pytest
import torch

from tformer import reference
from tformer.nn.gated import GATES, GatedFeedForward

B, T, D, F = 2, 5, 7, 11


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gate", GATES)
def test_gated(parity, gate, bias):
    module = GatedFeedForward(D, F, gate=gate, dropout=0.5, bias=bias)
    module = parity.module(module)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.GatedFeedForward)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))


@pytest.mark.parametrize("name", ["sigmoid", "silu"])
def test_functions(parity, name):
    array, tensor = parity.numbers(B, T, F)
    theirs = getattr(torch.nn.functional, name)
    parity.same(getattr(reference, name)(3 * array), theirs(3 * tensor))
    with np.errstate(over="raise"):
        far = getattr(reference, name)(np.array([-1e4, 1e4]))
    np.testing.assert_array_equal(far, theirs(torch.tensor([-1e4, 1e4])).numpy())


def test_errors(same_error):
    message = "gate ('silu') must be one of glu, reglu, geglu, geglu_tanh, swiglu"
    same_error(
        lambda: reference.GatedFeedForward({}, gate="silu"),
        lambda: GatedFeedForward(D, F, gate="silu"),
        ValueError,
        message,
    )
