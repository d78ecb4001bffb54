import numpy as np
import pytest

import tformer
from tformer.reference import LayerNorm, Residual, from_torch

B, T, D = 2, 5, 7


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_residual(parity, norm_first, bias):
    module = tformer.Residual(D, dropout=0.4, norm_first=norm_first, eps=0.1, bias=bias)
    module = parity.module(module)
    twin = from_torch(module)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array, lambda x: x * x), module(tensor, lambda x: x * x))
    assert isinstance(twin, Residual)


def test_both_orders_by_hand(new_parity):
    parity = new_parity()
    x, _ = parity.numbers(B, T, D)
    gain, _ = parity.numbers(D)
    weights = {"norm.weight": gain}
    norm = LayerNorm({"weight": gain})
    post = Residual(weights)(x, np.tanh)
    np.testing.assert_array_equal(post, norm(x + np.tanh(x)))
    pre = Residual(weights, norm_first=True)(x, np.tanh)
    np.testing.assert_array_equal(pre, x + np.tanh(norm(x)))
