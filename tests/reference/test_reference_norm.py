import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import norm as original
from tformer.reference import LayerNorm, from_torch, layer_norm

B, T, D = 2, 5, 11


def test_known_numbers():
    x = np.array([1.0, 0.0, 0.0, 0.0])
    known = [1.7320, -0.5773, -0.5773, -0.5773]
    np.testing.assert_allclose(layer_norm(x, np.ones(4)), known, rtol=0, atol=5e-5)


def test_a_constant_vector_gives_the_bias():
    bias = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(layer_norm(np.full(3, 7.0), np.ones(3), bias), bias)


@pytest.mark.parametrize("shape", [(D,), (T, D), (B, 3, T, D)])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_layer_norm(parity, shape, with_bias, eps):
    (x, x_tensor), (weight, weight_tensor), (bias, bias_tensor) = (
        parity.numbers(*shape),
        parity.numbers(D),
        parity.numbers(D) if with_bias else (None, None),
    )
    expected = original.layer_norm(x_tensor, weight_tensor, bias_tensor, eps)
    parity.same(layer_norm(x, weight, bias, eps), expected)
    fused = torch.nn.functional.layer_norm(
        x_tensor, (D,), weight_tensor, bias_tensor, eps
    )
    parity.same(layer_norm(x, weight, bias, eps), fused)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_module(parity, bias, fused):
    module = parity.module(tformer.LayerNorm(D, 1e-3, bias=bias, fused=fused))
    twin = from_torch(module)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, LayerNorm)
    assert twin.eps == 1e-3
    assert (twin.bias is not None) == bias


@settings(max_examples=50, deadline=None)
@given(
    width=st.integers(1, 30),
    shift=st.sampled_from([0.0, -3.0, 100.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_mean_and_variance(new_parity, width, shift, seed):
    array, tensor = new_parity(seed=seed).numbers(3, width)
    gain = np.ones(width)
    normal = layer_norm(array + shift, gain)
    np.testing.assert_allclose(normal.mean(-1), 0, atol=1e-9)
    variance = array.var(-1)
    np.testing.assert_allclose(normal.var(-1), variance / (variance + 1e-5), atol=1e-9)
    expected = torch.nn.functional.layer_norm(tensor + shift, (width,))
    np.testing.assert_allclose(normal, expected.numpy(), atol=1e-9)


def test_bad_width(same_error):
    module = tformer.LayerNorm(D)
    twin = from_torch(module)
    same_error(
        lambda: twin(np.zeros((B, T, 7))),
        lambda: module(torch.zeros(B, T, 7)),
        ValueError,
        "x has width 7 but d_model is 11: x is (2, 5, 7)",
    )


@pytest.mark.parametrize("eps", [0.0, -1.0])
def test_bad_eps(same_error, eps):
    same_error(
        lambda: LayerNorm({"weight": np.ones(D)}, eps),
        lambda: tformer.LayerNorm(D, eps),
        ValueError,
        f"eps ({eps}) must be above 0",
    )
