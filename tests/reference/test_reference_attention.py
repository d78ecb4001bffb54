import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import attention as original
from tformer.reference import (
    attention_weights,
    scaled_dot_product_attention,
    softmax,
)

B, H, T, S, Dh, Dv = 2, 3, 5, 7, 11, 13


@pytest.fixture(autouse=True)
def no_warnings():
    """A query without keys must not divide zero by zero, even where none looks."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def draw(parity, heads=H, kv_heads=H, queries=T, keys=S):
    arrays, tensors = zip(
        parity.numbers(B, heads, queries, Dh),
        parity.numbers(B, kv_heads, keys, Dh),
        parity.numbers(B, kv_heads, keys, Dv),
        strict=True,
    )
    return arrays, tensors


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax(parity, axis):
    array, tensor = parity.numbers(2, 3, 5)
    before = array.copy()
    shares = softmax(100 * array, axis)
    parity.same(shares, torch.softmax(100 * tensor, axis))
    np.testing.assert_allclose(shares.sum(axis), 1, rtol=1e-6)
    np.testing.assert_array_equal(array, before)


def test_softmax_takes_the_last_axis():
    shares = softmax(np.log(np.array([[1.0, 3.0], [2.0, 2.0]])))
    np.testing.assert_allclose(shares, [[0.25, 0.75], [0.5, 0.5]])


def test_closed_form():
    identity = np.eye(2)[None, None]
    query = np.array([0.0, math.sqrt(2)])[None, None, None]
    output, weights = scaled_dot_product_attention(
        query, identity, identity, return_weights=True
    )
    expected = np.array([1, math.e]) / (1 + math.e)
    np.testing.assert_allclose(weights[0, 0, 0], expected, rtol=1e-15)
    np.testing.assert_allclose(output[0, 0, 0], expected, rtol=1e-15)


MASKS = [None, (S,), (T, 1), (T, S), (H, 1, S), (B, 1, 1, S), (B, H, T, S)]
BIASES = [None, (H, 1, S), (T, S)]


@pytest.mark.parametrize(
    ("mask_shape", "bias_shape", "is_causal", "softcap"),
    list(itertools.product(MASKS, BIASES, [False, True], [None, 0.7])),
)
def test_options(parity, mask_shape, bias_shape, is_causal, softcap):
    arrays, tensors = draw(parity)
    mask, mask_tensor = parity.mask(*mask_shape) if mask_shape else (None, None)
    bias, bias_tensor = parity.numbers(*bias_shape) if bias_shape else (None, None)
    options = {"is_causal": is_causal, "softcap": softcap, "scale": 0.4}

    output, weights = scaled_dot_product_attention(
        *arrays, mask, bias=bias, return_weights=True, **options
    )
    expected = tformer.scaled_dot_product_attention(
        *tensors, mask_tensor, bias=bias_tensor, return_weights=True, **options
    )
    parity.same((output, weights), expected)
    assert output.shape == (B, H, T, Dv)
    assert weights.shape == (B, H, T, S)

    alone = scaled_dot_product_attention(*arrays, mask, bias=bias, **options)
    fused = tformer.scaled_dot_product_attention(
        *tensors, mask_tensor, bias=bias_tensor, **options
    )
    np.testing.assert_array_equal(alone, output)
    parity.same(alone, fused)


@pytest.mark.parametrize(("queries", "keys"), [(1, 7), (5, 7), (7, 7), (7, 5), (5, 1)])
def test_causal_lines_up_the_last(parity, queries, keys):
    arrays, tensors = draw(parity, queries=queries, keys=keys)
    output, weights = scaled_dot_product_attention(
        *arrays, is_causal=True, return_weights=True
    )
    parity.same(output, tformer.scaled_dot_product_attention(*tensors, is_causal=True))
    seen = np.tri(queries, keys, keys - queries, dtype=bool)
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(seen, weights.shape))


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_grouped_heads(parity, kv_heads):
    arrays, tensors = draw(parity, heads=6, kv_heads=kv_heads)
    twin = scaled_dot_product_attention(*arrays, return_weights=True)
    parity.same(
        twin, tformer.scaled_dot_product_attention(*tensors, return_weights=True)
    )
    parity.same(twin[0], tformer.scaled_dot_product_attention(*tensors))


@pytest.mark.parametrize("hidden_by", ["mask", "bias"])
def test_a_query_without_keys_gets_zeros(parity, hidden_by):
    arrays, tensors = draw(parity)
    hidden = np.zeros((T, S), dtype=bool)
    hidden[2] = True
    if hidden_by == "mask":
        mask, bias = ~hidden, None
    else:
        mask, bias = None, np.where(hidden, -np.inf, 0.5).astype(parity.dtype)
    output, weights = scaled_dot_product_attention(
        *arrays, mask, bias=bias, return_weights=True
    )
    assert not output[:, :, 2].any()
    assert not weights[:, :, 2].any()
    others = weights[:, :, [0, 1, 3, 4]]
    np.testing.assert_allclose(others.sum(-1), 1, rtol=1e-6)
    expected = tformer.scaled_dot_product_attention(
        *tensors,
        None if mask is None else torch.tensor(mask),
        bias=None if bias is None else torch.tensor(bias),
        return_weights=True,
    )
    parity.same((output, weights), expected)


def test_large_scores_do_not_overflow(parity):
    (query, key, value), tensors = draw(parity)
    output = scaled_dot_product_attention(1e4 * query, 1e4 * key, value)
    query_tensor, key_tensor, value_tensor = tensors
    expected = tformer.scaled_dot_product_attention(
        1e4 * query_tensor, 1e4 * key_tensor, value_tensor, return_weights=True
    )
    assert np.isfinite(output).all()
    parity.same(output, expected[0])


def test_float16_is_summed_in_float32(new_parity):
    arrays, tensors = draw(new_parity("float16"))
    arrays = [300 * arrays[0], 300 * arrays[1], arrays[2]]
    tensors = [300 * tensors[0], 300 * tensors[1], tensors[2]]
    output, weights = scaled_dot_product_attention(*arrays, return_weights=True)
    expected = tformer.scaled_dot_product_attention(*tensors, return_weights=True)
    assert output.dtype == weights.dtype == np.float16
    np.testing.assert_allclose(output, expected[0].numpy(), rtol=0, atol=2e-3)
    np.testing.assert_allclose(weights, expected[1].numpy(), rtol=0, atol=1e-3)


def test_numpy_scalars_and_wide_biases_keep_the_dtype(new_parity):
    parity = new_parity("float32")
    arrays, tensors = draw(parity)
    bias = np.full((T, S), 0.3)  # float64
    bias[:, 0] = 1.1
    twin = scaled_dot_product_attention(
        *arrays, bias=bias, scale=np.float64(0.3), return_weights=True
    )
    parity.same(
        twin,
        tformer.scaled_dot_product_attention(
            *tensors, bias=torch.tensor(bias), scale=0.3, return_weights=True
        ),
    )


def test_arguments_are_left_as_they_are(new_parity):
    parity = new_parity()
    arrays, _ = draw(parity)
    mask, _ = parity.mask(T, S)
    mask[1] = False
    bias, _ = parity.numbers(H, T, S)
    before = [x.copy() for x in (*arrays, mask, bias)]
    scaled_dot_product_attention(*arrays, mask, bias=bias, is_causal=True, softcap=2.0)
    for x, old in zip((*arrays, mask, bias), before, strict=True):
        np.testing.assert_array_equal(x, old)


def test_attention_weights(parity):
    (query, key, _), (query_tensor, key_tensor, _) = draw(parity)
    allowed, allowed_tensor = parity.mask(B, 1, T, S)
    bias, bias_tensor = parity.numbers(H, T, S)
    options = {"scale": 0.2, "softcap": 1.5}
    parity.same(
        attention_weights(query, key, allowed, bias=bias, **options),
        original.attention_weights(
            query_tensor, key_tensor, allowed_tensor, bias=bias_tensor, **options
        ),
    )


def test_long_sequences(parity):
    """Where the original takes the queries a block at a time."""
    inputs = [parity.numbers(1, 2, length, 3) for length in (601, 607, 607)]
    inputs.append(parity.mask(601, 607))
    arrays, tensors = zip(*inputs, strict=True)
    output = scaled_dot_product_attention(*arrays, is_causal=True)
    expected = tformer.scaled_dot_product_attention(*tensors, is_causal=True)
    parity.same(output, expected)


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 6)] * 6),
    groups=st.integers(1, 3),
    is_causal=st.booleans(),
    share=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape(new_parity, sizes, groups, is_causal, share, seed):
    parity = new_parity(seed=seed)
    batch, kv_heads, queries, keys, width, value_width = sizes
    arrays, tensors = zip(
        parity.numbers(batch, kv_heads * groups, queries, width),
        parity.numbers(batch, kv_heads, keys, width),
        parity.numbers(batch, kv_heads, keys, value_width),
        parity.mask(batch, 1, queries, keys, share=share),
        strict=True,
    )
    twin = scaled_dot_product_attention(
        *arrays, is_causal=is_causal, return_weights=True
    )
    expected = tformer.scaled_dot_product_attention(
        *tensors, is_causal=is_causal, return_weights=True
    )
    parity.same(twin, expected)
    fused = tformer.scaled_dot_product_attention(*tensors, is_causal=is_causal)
    parity.same(twin[0], fused)


BAD = [
    ({"query": (H, T, Dh)}, ValueError, "query must be (batch, heads, length, width)"),
    ({"key": (B, H, 0, Dh)}, ValueError, "key is empty: its shape is (2, 3, 0, 11)"),
    ({"key": (B, H, S, 5)}, ValueError, "key has head_dim 5 but query has 11"),
    ({"key": (1, H, S, Dh)}, ValueError, "key has batch 1 but query has 2"),
    ({"value": (B, H, 6, Dv)}, ValueError, "value is (2, 3, 6, 13), key is (2, 3, 7"),
    ({"key": (B, 2, S, Dh), "value": (B, 2, S, Dv)}, ValueError, "multiple of key's 2"),
    ({"softcap": 0.0}, ValueError, "softcap (0.0) must be above 0"),
    ({"attn_mask": (T, T)}, ValueError, "(B, H, T, S) = (2, 3, 5, 7), not (5, 5)"),
    ({"attn_mask": (1, B, H, T, S)}, ValueError, "attn_mask must broadcast"),
    ({"bias": (H, T)}, ValueError, "bias must broadcast to (B, H, T, S)"),
]


@pytest.mark.parametrize(("changes", "kind", "message"), BAD)
def test_bad_shapes(new_parity, same_error, changes, kind, message):
    parity = new_parity()
    shapes = {"query": (B, H, T, Dh), "key": (B, H, S, Dh), "value": (B, H, S, Dv)}
    arguments = {
        name: (given, given)
        if not isinstance(given, tuple)
        else parity.mask(*given)
        if name == "attn_mask"
        else parity.numbers(*given)
        for name, given in {**shapes, **changes}.items()
    }
    same_error(
        lambda: scaled_dot_product_attention(
            **{n: x for n, (x, _) in arguments.items()}
        ),
        lambda: tformer.scaled_dot_product_attention(
            **{n: x for n, (_, x) in arguments.items()}
        ),
        kind,
        message,
    )


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("attn_mask", "float64", "attn_mask must be bool (True = may attend)"),
        ("attn_mask", "int64", "not int64; what is added to the scores is `bias`"),
        ("bias", "bool", "bias must be floating, not bool; a mask is `attn_mask`"),
        ("query", "int64", "query must be floating, not int64"),
        ("key", "float32", "key is float32 but query is float64"),
        ("value", "float32", "value is float32 but query is float64"),
    ],
)
def test_bad_dtypes(new_parity, same_error, name, dtype, message):
    arrays, _ = draw(new_parity())
    arguments = dict(zip(("query", "key", "value"), arrays, strict=True))
    shape = arguments[name].shape if name in arguments else (T, S)
    arguments[name] = np.ones(shape, dtype=dtype)
    tensors = {name: torch.tensor(array) for name, array in arguments.items()}
    same_error(
        lambda: scaled_dot_product_attention(**arguments),
        lambda: tformer.scaled_dot_product_attention(**tensors),
        TypeError,
        message,
    )


@pytest.mark.parametrize("name", ["query", "key", "value", "attn_mask", "bias"])
def test_what_is_no_array(new_parity, name):
    arrays, _ = draw(new_parity())
    arguments = dict(zip(("query", "key", "value"), arrays, strict=True))
    arguments[name] = torch.ones(T, S)
    with pytest.raises(TypeError, match=f"{name} must be a NumPy array, not Tensor"):
        scaled_dot_product_attention(**arguments)


@pytest.mark.parametrize("dropout_p", [0.1, -0.5, 1.0])
def test_there_is_no_dropout(new_parity, dropout_p):
    arrays, _ = draw(new_parity())
    rule = rf"dropout_p \({dropout_p}\) must be 0: the NumPy twin has no dropout"
    with pytest.raises(ValueError, match=rule):
        scaled_dot_product_attention(*arrays, dropout_p=dropout_p)
