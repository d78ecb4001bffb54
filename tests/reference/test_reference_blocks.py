"""The fast form of the twin's attention equals its formula, and holds few scores."""

import tracemalloc
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tformer.reference import attention_weights, blocks, scaled_dot_product_attention
from tformer.reference.attention import mix_values


def formula(query, key, value, attn_mask=None, **options):
    weights = attention_weights(query, key, attn_mask, **options)
    return mix_values(weights, value)


@st.composite
def attentions(draw):
    """Inputs: shapes, groups, masks, biases, flags, scales and how large scores are."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    G, R = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    B, H = draw(st.integers(1, 3)), G * R
    T, S = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    dtype = draw(st.sampled_from(["float32", "float64"]))

    def normal(*shape):
        return random.standard_normal(shape).astype(dtype)

    query = normal(B, H, T, 5) * draw(st.sampled_from([1, 100]))
    shapes = st.one_of(
        st.none(),
        st.just((T, S)),
        st.tuples(*(st.sampled_from([1, size]) for size in (B, H, T, S))),
    )
    options = {
        "is_causal": draw(st.booleans()),
        "scale": draw(st.sampled_from([None, -0.7, 0.0])),
        "softcap": draw(st.sampled_from([None, 0.7, 50.0])),
    }
    if (shape := draw(shapes)) is not None:
        options["attn_mask"] = random.random(shape) < 0.6
    if (shape := draw(shapes)) is not None:
        hidden = random.random(shape) < 0.2
        bias = normal(*shape) * draw(st.sampled_from([1, 200]))
        options["bias"] = np.where(hidden, -np.inf, bias).astype(dtype)
    return query, normal(B, G, S, 5), normal(B, G, S, 3), options


@settings(max_examples=200, deadline=None)
@given(
    attentions(),
    st.integers(1, 50),
    st.integers(1, 3000),
    st.integers(1, 200),
    st.booleans(),
)
def test_blocks_equal_the_formula(inputs, queries, scores, tile, bounds):
    query, key, value, options = inputs
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error")
        patch.setattr(blocks, "QUERIES_AT_A_TIME", queries)
        patch.setattr(blocks, "SCORES_AT_A_TIME", scores)
        patch.setattr(blocks, "NUMBERS_OF_A_TILE", tile)
        patch.setattr(blocks, "FEW", 0 if bounds else 2**30)
        output = scaled_dot_product_attention(query, key, value, **options)
        expected = formula(query, key, value, **options)
    assert output.dtype == expected.dtype
    atol = 1e-11 if output.dtype == np.float64 else 5e-5
    np.testing.assert_allclose(output, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("size", [1, 25, 1e4, 1e30])
def test_no_power_overflows(size):
    """Small scores are not shifted by the largest; these are, where they need it."""
    random = np.random.default_rng(0)
    query, key, value = random.standard_normal((3, 1, 2, 200, 8))
    query = query * size / 8
    output = scaled_dot_product_attention(
        query.astype("f4"), key.astype("f4"), value.astype("f4")
    )
    assert np.isfinite(output).all()
    exact = formula(query.astype("f4").astype("f8"), key.astype("f4"), value)
    if size < 1e4:  # beyond, one rounding of a score changes who is the largest
        np.testing.assert_allclose(output, exact, rtol=0, atol=1e-4)


def test_a_nan_is_not_lost():
    query, key, value = np.ones((3, 1, 2, 200, 8), "f4")
    query[0, 1, 150, 3] = np.nan
    output = scaled_dot_product_attention(query, key, value, is_causal=True)
    assert np.isnan(output[0, 1, 150]).all()
    assert np.isnan(output).sum() == 8


def test_half_precision_is_no_less_exact_than_torchs_kernel():
    query, key, value = torch.randn(3, 1, 2, 300, 16, generator=torch.manual_seed(0))
    half = [x.half() for x in (4 * query, key, value)]
    attend = torch.nn.functional.scaled_dot_product_attention
    exact = attend(*(x.double() for x in half))
    kernel = attend(*half)
    output = scaled_dot_product_attention(*(x.numpy() for x in half))
    assert output.dtype == np.float16

    def error(x):
        return float((torch.as_tensor(x).double() - exact).square().mean().sqrt())

    assert error(output) <= 1.1 * error(kernel)


def test_memory_grows_with_the_length_and_not_with_its_square():
    query, key, value = np.ones((3, 1, 8, 2048, 64), "f4")
    mask = np.ones((1, 1, 1, 2048), bool)
    tracemalloc.start()
    scaled_dot_product_attention(query, key, value, mask, is_causal=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # the scores alone would be 134 MB
