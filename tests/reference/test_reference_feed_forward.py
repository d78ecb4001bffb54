import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.fast.linear import Linear as TorchLinear
from tformer.reference import FeedForward, from_torch, gelu, gelu_tanh, relu, relu2
from tformer.reference.feed_forward import erf
from tformer.reference.linear import Linear, linear

B, T, D, F = 2, 5, 7, 13


def test_erf():
    x = np.concatenate([np.linspace(-7, 7, 28_001), np.linspace(-1e-3, 1e-3, 201)])
    expected = np.array([math.erf(number) for number in x])
    np.testing.assert_allclose(erf(x), expected, rtol=1e-15, atol=1e-300)
    ends = np.array([-np.inf, -0.0, 0.0, 1e-310, 40.0, np.inf])
    expected = np.array([math.erf(number) for number in ends])
    np.testing.assert_allclose(erf(ends), expected, rtol=1e-15)
    np.testing.assert_array_equal(np.signbit(erf(ends)), np.signbit(expected))
    assert np.isnan(erf(np.array([np.nan]))).all()


@settings(max_examples=50, deadline=None)
@given(st.floats(-10, 10))
def test_erf_of_any_number(number):
    assert math.isclose(erf(np.array([number]))[0], math.erf(number), rel_tol=1e-15)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (relu, torch.nn.functional.relu),
        (gelu, torch.nn.functional.gelu),
        (gelu_tanh, torch.nn.GELU("tanh")),
        (relu2, lambda x: torch.nn.functional.relu(x) ** 2),
    ],
)
def test_activations(parity, ours, theirs):
    array, tensor = parity.numbers(B, T, F)
    parity.same(ours(3 * array), theirs(3 * tensor))
    special = np.array([np.nan, 0.0], dtype=parity.dtype)
    np.testing.assert_array_equal(ours(special), theirs(torch.tensor(special)).numpy())


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "relu2"])
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward(parity, activation, bias):
    module = tformer.FeedForward(D, F, activation=activation, dropout=0.5, bias=bias)
    module = parity.module(module)
    twin = from_torch(module)
    array, tensor = parity.numbers(B, T, D)
    parity.same(twin(array), module(tensor))
    assert isinstance(twin, FeedForward)
    assert twin(array).shape == (B, T, D)


def test_linear(parity):
    (x, x_tensor), (weight, weight_tensor), (bias, bias_tensor) = (
        parity.numbers(B, T, D),
        parity.numbers(F, D),
        parity.numbers(F),
    )
    expected = torch.nn.functional.linear(x_tensor, weight_tensor, bias_tensor)
    parity.same(linear(x, weight, bias), expected)
    twin = Linear({"weight": weight, "bias": bias})
    parity.same(twin(x), expected)
    module = parity.module(TorchLinear(D, F, bias=False))
    parity.same(from_torch(module)(x), module(x_tensor))


def test_unknown_activation(same_error):
    weights = {"linear1.weight": np.ones((F, D)), "linear2.weight": np.ones((D, F))}
    same_error(
        lambda: FeedForward(weights, activation="silu"),
        lambda: tformer.FeedForward(D, F, activation="silu"),
        ValueError,
        "activation ('silu') must be one of relu, gelu, gelu_tanh, relu2",
    )


def test_shapes_of_the_two_layers():
    weights = {"linear1.weight": np.ones((F, D)), "linear2.weight": np.ones((F, D))}
    with pytest.raises(ValueError, match="mismatch"):
        FeedForward(weights)(np.ones((B, T, D)))
