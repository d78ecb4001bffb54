import inspect
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
    expected = np.array([1, math.e]) / (1 + math.e)
    for compute in (
        lambda: attention_weights(query, identity),
        lambda: scaled_dot_product_attention(query, identity, identity),
    ):
        np.testing.assert_allclose(compute()[0, 0, 0], expected, rtol=1e-15)


MASKS = [None, (T, S), (1, 1, T, 1), (1, H, 1, S), (B, 1, 1, S), (B, H, T, S)]
BIASES = [None, (1, H, 1, S), (T, S)]


def both(arrays, *mask, **options):
    """Attend with the twin: (B, H, T, Dv) and the weights (B, H, T, S)."""
    query, key, value = arrays
    output = scaled_dot_product_attention(query, key, value, *mask, **options)
    return output, attention_weights(query, key, *mask, **options)


def both_in_torch(tensors, *mask, **options):
    query, key, value = tensors
    output = tformer.scaled_dot_product_attention(query, key, value, *mask, **options)
    return output, original.attention_weights(query, key, *mask, **options)


@pytest.mark.parametrize(
    ("mask_shape", "bias_shape", "is_causal", "softcap"),
    list(itertools.product(MASKS, BIASES, [False, True], [None, 0.7])),
)
def test_options(parity, mask_shape, bias_shape, is_causal, softcap):
    arrays, tensors = draw(parity)
    mask, mask_tensor = parity.mask(*mask_shape) if mask_shape else (None, None)
    bias, bias_tensor = parity.numbers(*bias_shape) if bias_shape else (None, None)
    options = {"is_causal": is_causal, "softcap": softcap, "scale": 0.4}

    output, weights = both(arrays, mask, bias=bias, **options)
    expected = both_in_torch(tensors, mask_tensor, bias=bias_tensor, **options)
    parity.same((output, weights), expected)
    assert output.shape == (B, H, T, Dv)
    assert weights.shape == (B, H, T, S)


@pytest.mark.parametrize("mask_shape", MASKS)
@pytest.mark.parametrize("bias_shape", BIASES)
def test_torchs_own_function(parity, mask_shape, bias_shape):
    """The same numbers as `F.scaled_dot_product_attention`, where a query has keys."""
    arrays, tensors = draw(parity)
    added = torch.zeros(B, H, T, S, dtype=tensors[0].dtype)
    mask = bias = None
    if mask_shape:
        mask, tensor = parity.mask(*mask_shape)
        mask[..., 0] = tensor[..., 0] = True
        added = added.masked_fill(~tensor, -torch.inf)
    if bias_shape:
        bias, tensor = parity.numbers(*bias_shape)
        added = added + tensor
    parity.same(
        scaled_dot_product_attention(*arrays, mask, bias=bias),
        torch.nn.functional.scaled_dot_product_attention(*tensors, added),
    )


@pytest.mark.parametrize("mask_shape", MASKS)
def test_weights_sum_to_1_or_0(parity, mask_shape):
    (query, key, _), _ = draw(parity)
    mask, _ = parity.mask(*mask_shape, share=0.3) if mask_shape else (None, None)
    weights = attention_weights(query, key, mask)
    dead = np.zeros((B, H, T), dtype=bool)
    if mask is not None:
        dead = ~np.broadcast_to(mask, weights.shape).any(axis=-1)
        assert not weights[~np.broadcast_to(mask, weights.shape)].any()
    np.testing.assert_allclose(weights.sum(-1), np.where(dead, 0, 1), atol=1e-6)
    assert (weights >= 0).all()


@pytest.mark.parametrize(("queries", "keys"), [(1, 7), (5, 7), (7, 7), (7, 5), (5, 1)])
def test_causal_lines_up_the_last(parity, queries, keys):
    arrays, tensors = draw(parity, queries=queries, keys=keys)
    output, weights = both(arrays, is_causal=True)
    parity.same(output, tformer.scaled_dot_product_attention(*tensors, is_causal=True))
    seen = np.tri(queries, keys, keys - queries, dtype=bool)
    np.testing.assert_array_equal(weights > 0, np.broadcast_to(seen, weights.shape))


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_grouped_heads(parity, kv_heads):
    arrays, tensors = draw(parity, heads=6, kv_heads=kv_heads)
    parity.same(both(arrays), both_in_torch(tensors))
    query, key, value = tensors
    repeated = [x.repeat_interleave(6 // kv_heads, dim=1) for x in (key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(query, *repeated)
    parity.same(scaled_dot_product_attention(*arrays), expected)


@pytest.mark.parametrize("hidden_by", ["mask", "bias"])
def test_a_query_without_keys_gets_zeros(parity, hidden_by):
    arrays, tensors = draw(parity)
    hidden = np.zeros((T, S), dtype=bool)
    hidden[2] = True
    if hidden_by == "mask":
        mask, bias = ~hidden, None
    else:
        mask, bias = None, np.where(hidden, -np.inf, 0.5).astype(parity.dtype)
    output, weights = both(arrays, mask, bias=bias)
    assert not output[:, :, 2].any()
    assert not weights[:, :, 2].any()
    others = weights[:, :, [0, 1, 3, 4]]
    np.testing.assert_allclose(others.sum(-1), 1, rtol=1e-6)
    expected = both_in_torch(
        tensors,
        None if mask is None else torch.tensor(mask),
        bias=None if bias is None else torch.tensor(bias),
    )
    parity.same((output, weights), expected)


def test_large_scores_do_not_overflow(parity):
    (query, key, value), tensors = draw(parity)
    output = scaled_dot_product_attention(1e4 * query, 1e4 * key, value)
    query_tensor, key_tensor, value_tensor = tensors
    expected = torch.nn.functional.scaled_dot_product_attention(
        1e4 * query_tensor, 1e4 * key_tensor, value_tensor
    )
    assert np.isfinite(output).all()
    parity.same(output, expected)


def test_float16_is_summed_in_float32(new_parity):
    arrays, tensors = draw(new_parity("float16"))
    arrays = [300 * arrays[0], 300 * arrays[1], arrays[2]]
    tensors = [300 * tensors[0], 300 * tensors[1], tensors[2]]
    output, weights = both(arrays)
    expected = both_in_torch(tensors)
    assert output.dtype == weights.dtype == np.float16
    np.testing.assert_allclose(output, expected[0].numpy(), rtol=0, atol=2e-3)
    np.testing.assert_allclose(weights, expected[1].numpy(), rtol=0, atol=1e-3)


def test_numpy_scalars_and_wide_biases_keep_the_dtype(new_parity):
    parity = new_parity("float32")
    arrays, tensors = draw(parity)
    bias = np.full((T, S), 0.3)  # float64
    bias[:, 0] = 1.1
    parity.same(
        both(arrays, bias=bias, scale=np.float64(0.3)),
        both_in_torch(tensors, bias=torch.tensor(bias).float(), scale=0.3),
    )


def test_arguments_are_left_as_they_are(new_parity):
    parity = new_parity()
    arrays, _ = draw(parity)
    mask, _ = parity.mask(T, S)
    mask[1] = False
    bias, _ = parity.numbers(1, H, T, S)
    before = [x.copy() for x in (*arrays, mask, bias)]
    scaled_dot_product_attention(*arrays, mask, bias=bias, is_causal=True, softcap=2.0)
    for x, old in zip((*arrays, mask, bias), before, strict=True):
        np.testing.assert_array_equal(x, old)


def test_attention_weights(parity):
    (query, key, _), (query_tensor, key_tensor, _) = draw(parity)
    allowed, allowed_tensor = parity.mask(B, 1, T, S)
    bias, bias_tensor = parity.numbers(1, H, T, S)
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
    *heads, mask = arrays
    *heads_in_torch, mask_in_torch = tensors
    twin = both(heads, mask, is_causal=is_causal)
    parity.same(twin, both_in_torch(heads_in_torch, mask_in_torch, is_causal=is_causal))


def arguments_of(parity, changes):
    """Draw arguments of these shapes, as arrays and as tensors."""
    shapes = {"query": (B, H, T, Dh), "key": (B, H, S, Dh), "value": (B, H, S, Dv)}
    drawn = {
        name: (given, given)
        if not isinstance(given, tuple)
        else parity.mask(*given)
        if name == "attn_mask"
        else parity.numbers(*given)
        for name, given in {**shapes, **changes}.items()
    }
    return ({name: pair[i] for name, pair in drawn.items()} for i in (0, 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": (1, H, S, Dh), "value": (1, H, S, Dv)}, "key has batch 1 but query"),
        ({"value": (1, H, S, Dv)}, "value is (1, 3, 7, 13), key is (2, 3, 7"),
        ({"value": (B, 1, S, Dv)}, "value and key must agree in batch, heads and"),
        ({"key": (B, 2, S, Dh), "value": (B, 2, S, Dv)}, "not a multiple of key's 2"),
        ({"key": (B, 6, S, Dh), "value": (B, 6, S, Dv)}, "not a multiple of key's 6"),
        ({"softcap": 0.0}, "softcap (0.0) must be above 0"),
        ({"softcap": -1.0}, "softcap (-1.0) must be above 0"),
        ({"softcap": math.inf}, "softcap (inf) must be above 0"),
    ],
)
def test_what_numpy_would_broadcast(new_parity, same_error, changes, message):
    arrays, tensors = arguments_of(new_parity(), changes)
    same_error(
        lambda: scaled_dot_product_attention(**arrays),
        lambda: tformer.scaled_dot_product_attention(**tensors),
        ValueError,
        message,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"query": (H, T, Dh)},
        {"key": (B, H, S, 5)},
        {"key": (B, H, 0, Dh), "value": (B, H, 0, Dv)},
        {"value": (B, H, 6, Dv)},
    ],
)
def test_what_numpy_refuses(new_parity, both_refuse, changes):
    arrays, tensors = arguments_of(new_parity(), changes)
    both_refuse(
        lambda: scaled_dot_product_attention(**arrays),
        lambda: tformer.scaled_dot_product_attention(**tensors),
    )


@pytest.mark.parametrize("name", ["attn_mask", "bias"])
@pytest.mark.parametrize(
    "shape",
    [
        *[(B, S), (B, T), (S, T), (T, 1), (S,), (B, 1, S), (H, 1, S), (H, T, S)],
        *[(B, T, S), (3, 1, 1, S), (B, H, T, T), (B, 1, 1, 2), (B, 2, T, S)],
        *[(1,), (1, 1, 1), (B, 1, T), (B, H, T), (B, H, T, S, 1), (1, B, H, T, S)],
    ],
)
def test_masks_that_might_broadcast_by_luck(new_parity, both_refuse, name, shape):
    """A (B, S) mask of padding is refused: a row of a (T, S) mask is a query."""
    arrays, tensors = arguments_of(new_parity(), {name: shape})
    both_refuse(
        lambda: scaled_dot_product_attention(**arrays),
        lambda: tformer.scaled_dot_product_attention(**tensors),
        f"{name} must be (T, S) = (5, 7), or have four axes and "
        f"broadcast to (B, H, T, S) = (2, 3, 5, 7), not {shape}",
    )


def test_a_mask_of_padding_for_as_many_sequences_as_queries(new_parity):
    """Where B = T nothing tells (B, S) from (T, S): it is (T, S)."""
    parity = new_parity()
    query, key = (parity.numbers(T, H, length, Dh)[0] for length in (T, S))
    mask, _ = parity.mask(T, S)
    by_query = attention_weights(query, key, mask)
    np.testing.assert_array_equal(
        by_query, attention_weights(query, key, mask[None, None])
    )
    by_sequence = attention_weights(query, key, mask[:, None, None])
    assert np.abs(by_query - by_sequence).max() > 0.1


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("attn_mask", "float64", "attn_mask must be bool (True = may attend), not fl"),
        ("attn_mask", "int64", "not int64; what is added to the scores is `bias`"),
        ("bias", "bool", "bias must be floating, not bool"),
        ("query", "int64", "query must be floating, not int64"),
        ("key", "int32", "key must be floating, not int32"),
        ("value", "int64", "value must be floating, not int64"),
    ],
)
def test_bad_dtypes(new_parity, both_refuse, name, dtype, message):
    arrays, _ = draw(new_parity())
    arguments = dict(zip(("query", "key", "value"), arrays, strict=True))
    shape = arguments[name].shape if name in arguments else (T, S)
    arguments[name] = np.ones(shape, dtype=dtype)
    tensors = {name: torch.tensor(array) for name, array in arguments.items()}
    both_refuse(
        lambda: scaled_dot_product_attention(**arguments),
        lambda: tformer.scaled_dot_product_attention(**tensors),
        message,
    )


@pytest.mark.parametrize("name", ["query", "key", "value", "attn_mask", "bias"])
def test_what_is_no_array(new_parity, name):
    """A tensor has no dtype of NumPy's, and so does not get through."""
    arrays, _ = draw(new_parity())
    arguments = dict(zip(("query", "key", "value"), arrays, strict=True))
    shape = arguments[name].shape if name in arguments else (T, S)
    arguments[name] = torch.ones(shape, dtype=torch.bool if "mask" in name else None)
    with pytest.raises((TypeError, AttributeError)):
        scaled_dot_product_attention(**arguments)


def test_there_is_no_dropout_and_one_return_type():
    of_twin = inspect.signature(scaled_dot_product_attention)
    of_original = inspect.signature(tformer.scaled_dot_product_attention)
    names = [name for name in of_original.parameters if name != "dropout_p"]
    assert list(of_twin.parameters) == names
    assert of_twin.return_annotation is np.ndarray
    of_original = inspect.signature(original.attention_weights)
    assert list(inspect.signature(attention_weights).parameters) == list(
        of_original.parameters
    )
