import inspect
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import heads as original
from tformer.reference import MultiHeadAttention, from_torch, merge_heads, split_heads

B, T, S, H, Dh = 2, 5, 7, 3, 11
D = H * Dh


def test_heads_are_slices_of_the_width(parity):
    array, tensor = parity.numbers(B, T, D)
    split = split_heads(array, H)
    parity.same(split, original.split_heads(tensor, H), 0)
    for head in range(H):
        own = array[:, :, head * Dh : (head + 1) * Dh]
        np.testing.assert_array_equal(split[:, head], own)
    parity.same(merge_heads(split), tensor, 0)


def build(parity, **options):
    module = parity.module(tformer.MultiHeadAttention(D, H, **options))
    return module, from_torch(module)


@pytest.mark.parametrize("kv_heads", [None, 1, 3])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention(parity, kv_heads, bias):
    module, twin = build(parity, num_kv_heads=kv_heads, bias=bias)
    array, tensor = parity.numbers(B, T, D)
    output, weights = twin(array, return_weights=True)
    parity.same((output, weights), module(tensor, return_weights=True))
    parity.same(twin(array), module(tensor))
    assert output.shape == (B, T, D)
    assert weights.shape == (B, H, T, T)
    assert (twin.q_proj.bias is not None) == bias


@pytest.mark.parametrize(
    ("mask_shape", "with_key_mask", "with_bias", "is_causal"),
    list(
        itertools.product(
            [None, (T, S), (B, 1, T, 1)], [False, True], [False, True], [False, True]
        )
    ),
)
def test_cross_attention(parity, mask_shape, with_key_mask, with_bias, is_causal):
    module, twin = build(parity)
    inputs = [parity.numbers(B, length, D) for length in (T, S, S)]
    inputs.append(parity.mask(*mask_shape) if mask_shape else (None, None))
    key_mask = parity.mask(B, S) if with_key_mask else (None, None)
    bias = parity.numbers(H, 1, S) if with_bias else (None, None)
    options = {"is_causal": is_causal, "return_weights": True}
    arrays, tensors = zip(*inputs, strict=True)
    output, weights = twin(*arrays, key_mask=key_mask[0], bias=bias[0], **options)
    expected = module(*tensors, key_mask=key_mask[1], bias=bias[1], **options)
    parity.same((output, weights), expected)
    assert output.shape == (B, T, D)
    assert weights.shape == (B, H, T, S)


def test_value_is_key_if_not_given(parity):
    module, twin = build(parity)
    (query, query_tensor), (key, key_tensor) = (
        parity.numbers(B, length, D) for length in (T, S)
    )
    parity.same(twin(query, key), module(query_tensor, key_tensor))
    np.testing.assert_array_equal(twin(query, key), twin(query, key, key))


def test_only_padding_leaves_the_bias_of_the_projection(parity):
    module, twin = build(parity)
    array, tensor = parity.numbers(B, T, D)
    key_mask = np.array([[True] * T, [False] * T])
    output = twin(array, key_mask=key_mask)
    parity.same(output, module(tensor, key_mask=torch.tensor(key_mask)))
    bias = np.broadcast_to(twin.out_proj.bias, (T, D))
    np.testing.assert_array_equal(output[1], bias)


@settings(max_examples=25, deadline=None)
@given(
    batch=st.integers(1, 3),
    lengths=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    kv_heads=st.integers(1, 3),
    groups=st.integers(1, 3),
    head_dim=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_shape(new_parity, batch, lengths, kv_heads, groups, head_dim, seed):
    parity = new_parity(seed=seed)
    heads = kv_heads * groups
    module = parity.module(
        tformer.MultiHeadAttention(heads * head_dim, heads, num_kv_heads=kv_heads)
    )
    inputs = [parity.numbers(batch, length, heads * head_dim) for length in lengths]
    arrays, tensors = zip(*inputs, strict=True)
    twin = from_torch(module)
    parity.same(
        twin(*arrays, return_weights=True), module(*tensors, return_weights=True)
    )


def test_arguments_are_those_of_the_original():
    of_twin = inspect.signature(MultiHeadAttention.__call__).parameters
    of_original = inspect.signature(tformer.MultiHeadAttention.forward).parameters
    assert list(of_twin) == [n for n in of_original if n != "cache"]  # for speed only


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"value": (B, S, D)}, ValueError, "value is given without key"),
        (
            {"query": (B, T, 32)},
            ValueError,
            "query must be (batch, length, d_model = 33",
        ),
        ({"key": (B, D)}, ValueError, "key must be (batch, length, d_model = 33)"),
        ({"key": (B, S, D), "value": (B, S, 32)}, ValueError, "value must be (batch, "),
        ({"key": (1, S, D)}, ValueError, "key has batch 1 but query has 2"),
        (
            {"key": (B, S, D), "value": (B, 6, D)},
            ValueError,
            "value and key must agree",
        ),
        ({"attn_mask": (S, T)}, ValueError, "attn_mask must broadcast to (B, H, T, S)"),
        ({"key_mask": (T, B)}, ValueError, "key_mask must be (B, S) = (2, 5)"),
    ],
)
def test_bad_shapes(new_parity, same_error, arguments, kind, message):
    parity = new_parity()
    module, twin = build(parity)
    drawn = {
        name: parity.mask(*shape) if "mask" in name else parity.numbers(*shape)
        for name, shape in {"query": (B, T, D), **arguments}.items()
    }
    same_error(
        lambda: twin(**{name: x for name, (x, _) in drawn.items()}),
        lambda: module(**{name: x for name, (_, x) in drawn.items()}),
        kind,
        message,
    )


@pytest.mark.parametrize("name", ["attn_mask", "key_mask"])
def test_a_mask_must_be_boolean(new_parity, same_error, name):
    parity = new_parity()
    module, twin = build(parity)
    (query, query_tensor), (mask, mask_tensor) = (
        parity.numbers(B, T, D),
        parity.numbers(B, T),
    )
    same_error(
        lambda: twin(query, **{name: mask}),
        lambda: module(query_tensor, **{name: mask_tensor}),
        TypeError,
        "mask must be bool (True = ",
    )


def test_an_empty_sequence(new_parity):
    _, twin = build(new_parity())
    with pytest.raises(ValueError, match=r"empty sequence: its shape is \(2, 0, 33\)"):
        twin(np.zeros((B, 0, D)))
    with pytest.raises(TypeError, match="query must be a NumPy array, not list"):
        twin([[0.0] * D])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 4}, r"d_model \(33\) must be divisible by num_heads \(4\)"),
        ({"num_heads": 0}, r"num_heads \(0\) must be at least 1"),
        (
            {"num_heads": 3, "num_kv_heads": 0},
            r"num_kv_heads \(0\) must be at least 1",
        ),
        (
            {"num_heads": 3, "num_kv_heads": 2},
            r"num_heads \(3\) must be divisible by num_kv_heads \(2\)",
        ),
        (
            {"num_heads": 3, "num_kv_heads": 1},
            r"k_proj.weight must be \(11, 33\), not \(33, 33\)",
        ),
    ],
)
def test_bad_heads(new_parity, options, message):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(weights, **options)
