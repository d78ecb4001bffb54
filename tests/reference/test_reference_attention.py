"""The formula in NumPy against torch, and attention in blocks against the formula."""

import math
import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import attention as original
from tformer.reference import (
    attention_in_blocks,
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
    softmax,
)


@pytest.fixture(autouse=True)
def no_warnings():
    """A query without keys must not divide zero by zero, even where none looks."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax(parity, axis):
    array, tensor = parity.numbers(2, 3, 5)
    before = array.copy()
    parity.same(softmax(100 * array, axis), torch.softmax(100 * tensor, axis))
    parity.same(softmax(array), torch.softmax(tensor, -1))
    np.testing.assert_array_equal(array, before)


def test_by_hand():
    identity = np.eye(2)[None, None]
    query = np.array([0.0, math.sqrt(2)])[None, None, None]
    expected = np.array([1, math.e]) / (1 + math.e)
    for compute in (
        lambda: attention_weights(query, identity),
        lambda: scaled_dot_product_attention(query, identity, identity),
        lambda: attention_in_blocks(query, identity, identity),
    ):
        np.testing.assert_allclose(compute()[0, 0, 0], expected, rtol=1e-15)
    weights = attention_weights(query, identity, sinks=np.array([2.0]))[0, 0, 0]
    expected = expected * (1 + math.e) / (1 + math.e + math.e**2)
    np.testing.assert_allclose(weights, expected, rtol=1e-15)


@st.composite
def attentions(draw):
    """Inputs: shapes, groups, masks, biases, flags, scales and how large scores are."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    G, R = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    B, H = draw(st.integers(1, 3)), G * R
    T, S = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    dtype = draw(st.sampled_from(["float32", "float64"]))

    def normal(*shape):
        return random.standard_normal(shape).astype(dtype)

    shapes = st.one_of(
        st.none(),
        st.just((T, S)),
        st.tuples(*(st.sampled_from([1, size]) for size in (B, H, T, S))),
    )
    options = {
        "is_causal": draw(st.booleans()),
        "scale": draw(st.sampled_from([None, 0.7])),
        "softcap": draw(st.sampled_from([None, 0.7, 50.0])),
    }
    if (shape := draw(shapes)) is not None:
        share = draw(st.sampled_from([0.0, 0.6, 1.0]))
        options["attn_mask"] = random.random(shape) < share
    if (shape := draw(shapes)) is not None:
        bias = normal(*shape) * draw(st.sampled_from([1, 200]))
        hidden = random.random(shape) < draw(st.sampled_from([0, 0.2]))
        options["bias"] = np.where(hidden, -np.inf, bias).astype(dtype)
    query = normal(B, H, T, 5) * np.float32(draw(st.sampled_from([1, 100])))
    return (query, normal(B, G, S, 5), normal(B, G, S, 3)), options


@settings(max_examples=200)
@given(attentions(), st.integers(1, 13))
def test_formula_and_blocks_against_torch(inputs, queries_at_a_time):
    arrays, options = inputs
    before = [x.copy() for x in (*arrays, *options.values()) if hasattr(x, "copy")]
    output = scaled_dot_product_attention(*arrays, **options)
    blocks = attention_in_blocks(
        *arrays, queries_at_a_time=queries_at_a_time, **options
    )
    weights = attention_weights(*arrays[:2], **options)
    after = [x for x in (*arrays, *options.values()) if hasattr(x, "copy")]
    for x, old in zip(after, before, strict=True):
        np.testing.assert_array_equal(x, old)

    tensors = [torch.tensor(x) for x in arrays]
    options = {
        name: torch.tensor(x) if isinstance(x, np.ndarray) else x
        for name, x in options.items()
    }
    expected = tformer.scaled_dot_product_attention(*tensors, **options)
    of_torch = original.attention_weights(*tensors[:2], **options)
    atol = 1e-10 if output.dtype == np.float64 else 2e-4
    for ours, theirs in (
        (output, expected),
        (blocks, expected),
        (weights, of_torch),
    ):
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=atol)


@pytest.mark.parametrize("window", [1, 3, 9])
def test_a_window_is_a_mask(parity, window):
    (query, key, value), _ = zip(
        *(parity.numbers(2, 3, n, 5) for n in (5, 7, 7)), strict=True
    )
    mask = causal_mask(5, 7, window=window)
    np.testing.assert_array_equal(
        scaled_dot_product_attention(query, key, value, is_causal=True, window=window),
        scaled_dot_product_attention(query, key, value, mask),
    )


def test_a_sink_is_a_key_without_a_value(parity):
    query, key, value = (parity.numbers(2, 3, n, 5)[0] for n in (5, 7, 7))
    sinks, _ = parity.numbers(3)
    mask, _ = parity.mask(2, 1, 5, 7)
    mask[0, 0, 1] = False
    output = scaled_dot_product_attention(query, key, value, mask, sinks=sinks)
    keys, values = (np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0))) for x in (key, value))
    bias = np.zeros((1, 3, 5, 8), parity.dtype)
    bias[..., 0] = sinks[:, None]
    allowed = np.pad(mask, ((0, 0), (0, 0), (0, 0), (1, 0)), constant_values=True)
    expected = scaled_dot_product_attention(query, keys, values, allowed, bias=bias)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-6)
    assert not output[0, :, 1].any()


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attention_in_blocks])
@pytest.mark.parametrize("size", [1, 25, 1e4, 1e18])
def test_no_power_overflows(attend, size):
    query, key, value = np.random.default_rng(0).standard_normal((3, 1, 2, 200, 8))
    query = query * size / 8
    narrow = [x.astype("f4") for x in (query, key, value)]
    output = attend(*narrow)
    assert np.isfinite(output).all()
    if size < 1e4:  # beyond, one rounding of a score changes who is the largest
        exact = attend(*(x.astype("f8") for x in narrow))
        np.testing.assert_allclose(output, exact, rtol=0, atol=1e-4)


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attention_in_blocks])
def test_a_nan_is_not_lost(attend):
    query, key, value = np.ones((3, 1, 2, 200, 8), "f4")
    query[0, 1, 150, 3] = np.nan
    output = attend(query, key, value, is_causal=True)
    assert np.isnan(output[0, 1, 150]).all()
    assert np.isnan(output).sum() == 8


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attention_in_blocks])
def test_half_precision_is_no_less_exact_than_torchs_kernel(attend):
    query, key, value = torch.randn(3, 1, 2, 300, 16)
    half = [x.half() for x in (4 * query, key, value)]
    kernel = torch.nn.functional.scaled_dot_product_attention
    exact = kernel(*(x.double() for x in half))
    output = attend(*(x.numpy() for x in half))
    assert output.dtype == np.float16

    def error(x):
        return float((torch.as_tensor(x).double() - exact).square().mean().sqrt())

    assert error(output) <= 1.1 * error(kernel(*half))


@pytest.mark.parametrize("attend", [scaled_dot_product_attention, attention_in_blocks])
def test_numpy_scalars_and_wide_biases_keep_the_dtype(attend):
    query, key, value = np.random.default_rng(0).random((3, 1, 2, 5, 7), "f4")
    bias = np.linspace(0, 1, 25).reshape(5, 5)  # float64
    output = attend(query, key, value, bias=bias, scale=np.float64(0.3))
    assert output.dtype == np.float32


def test_memory_of_blocks_does_not_grow_with_the_square():
    query, key, value = np.ones((3, 1, 8, 2048, 64), "f4")
    mask = np.ones((1, 1, 1, 2048), bool)
    tracemalloc.start()
    attention_in_blocks(query, key, value, mask, is_causal=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # the scores alone would be 134 MB
