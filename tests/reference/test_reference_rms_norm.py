import numpy as np
import pytest
import torch

from tformer import reference
from tformer.nn import rms_norm as theirs

B, T, D = 2, 5, 7


@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_rms_norm(parity, plus_one, eps):
    array, tensor = parity.numbers(B, T, D)
    module = parity.module(theirs.RMSNorm(D, eps, plus_one=plus_one))
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.RMSNorm)
    parity.same(twin(array), module(tensor))
    gain = module.gain().detach()
    parity.same(
        reference.rms_norm(array, gain.numpy(), eps),
        theirs.rms_norm(tensor, gain, eps),
    )


def test_errors(same_error):
    weights, x = {"weight": np.ones(D)}, np.ones((2, 1))
    same_error(
        lambda: reference.RMSNorm(weights)(x),
        lambda: theirs.RMSNorm(D)(torch.tensor(x)),
        ValueError,
        "x has width 1 but d_model is 7: x is (2, 1)",
    )
    same_error(
        lambda: reference.RMSNorm(weights, 0),
        lambda: theirs.RMSNorm(D, 0),
        ValueError,
        "eps (0) must be above 0 and finite",
    )
