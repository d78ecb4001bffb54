"""Attention in NumPy, whole and in blocks: what the specs do not ask."""

import tracemalloc
import warnings

import numpy as np
import pytest
import torch

from tformer.reference import (
    attention_in_blocks,
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
    parity.same(softmax, torch.softmax, 100 * parity.numbers(2, 3, 5), axis)


in_both = pytest.mark.parametrize(
    "attend", [scaled_dot_product_attention, attention_in_blocks]
)


@in_both
def test_a_bias_of_minus_infinity_hides_as_a_mask_does(attend):
    random = np.random.default_rng(0)
    query, key, value = random.normal(size=(3, 2, 3, 7, 5))
    seen = random.random((2, 1, 7, 7)) < 0.6
    seen[0, 0, 1] = False
    output = attend(query, key, value, bias=np.where(seen, 0, -np.inf))
    np.testing.assert_allclose(output, attend(query, key, value, seen), rtol=1e-12)


@in_both
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


@in_both
def test_a_nan_is_not_lost(attend):
    query, key, value = np.ones((3, 1, 2, 200, 8), "f4")
    query[0, 1, 150, 3] = np.nan
    output = attend(query, key, value, is_causal=True)
    assert np.isnan(output[0, 1, 150]).all()
    assert np.isnan(output).sum() == 8


@in_both
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


@in_both
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
