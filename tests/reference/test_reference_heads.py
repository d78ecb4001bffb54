import inspect
import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tformer
from tformer.nn import heads as original
from tformer.reference import (
    MultiHeadAttention,
    from_torch,
    length_mask,
    merge_heads,
    split_heads,
)

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
    output = twin(array)
    parity.same(output, module(tensor))
    assert output.shape == (B, T, D)
    assert (twin.q_proj.bias is not None) == bias


@pytest.mark.parametrize(
    ("mask_shape", "with_bias", "is_causal"),
    list(
        itertools.product(
            [None, (T, S), (B, 1, T, 1), (B, 1, 1, S)], [False, True], [False, True]
        )
    ),
)
def test_cross_attention(parity, mask_shape, with_bias, is_causal):
    module, twin = build(parity)
    inputs = [parity.numbers(B, length, D) for length in (T, S, S)]
    inputs.append(parity.mask(*mask_shape) if mask_shape else (None, None))
    bias = parity.numbers(1, H, 1, S) if with_bias else (None, None)
    arrays, tensors = zip(*inputs, strict=True)
    output = twin(*arrays, bias=bias[0], is_causal=is_causal)
    parity.same(output, module(*tensors, bias=bias[1], is_causal=is_causal))
    assert output.shape == (B, T, D)


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
    lengths = np.array([T, 0])
    output = twin(array, attn_mask=length_mask(lengths))
    mask = tformer.length_mask(torch.tensor(lengths))
    parity.same(output, module(tensor, attn_mask=mask))
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
    parity.same(twin(*arrays), module(*tensors))


def test_arguments_are_those_of_the_original():
    of_twin = inspect.signature(MultiHeadAttention.__call__).parameters
    of_original = inspect.signature(tformer.MultiHeadAttention.forward).parameters
    assert list(of_twin) == [n for n in of_original if n != "cache"]  # for speed only


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value": (B, S, D)}, "value is given without key"),
        ({"query": (B, T, 32)}, ""),
        ({"key": (B, D)}, ""),
        ({"query": (B, 0, D)}, ""),
        ({"key": (B, S, D), "value": (B, S, 32)}, ""),
        ({"key": (1, S, D)}, "key has batch 1 but query has 2"),
        ({"key": (B, S, D), "value": (B, 6, D)}, "value and key must agree"),
        ({"attn_mask": (S, T)}, "attn_mask must be (T, S) = (5, 5)"),
        ({"attn_mask": (B, T)}, "not (2, 5)"),
    ],
)
def test_bad_shapes(new_parity, both_refuse, arguments, message):
    parity = new_parity()
    module, twin = build(parity)
    drawn = {
        name: parity.mask(*shape) if "mask" in name else parity.numbers(*shape)
        for name, shape in {"query": (B, T, D), **arguments}.items()
    }
    both_refuse(
        lambda: twin(**{name: x for name, (x, _) in drawn.items()}),
        lambda: module(**{name: x for name, (_, x) in drawn.items()}),
        message,
    )


def test_a_mask_must_be_boolean(new_parity, same_error):
    parity = new_parity()
    module, twin = build(parity)
    (query, query_tensor), (mask, mask_tensor) = (
        parity.numbers(B, T, D),
        parity.numbers(T, T),
    )
    same_error(
        lambda: twin(query, attn_mask=mask),
        lambda: module(query_tensor, attn_mask=mask_tensor),
        TypeError,
        "mask must be bool (True = ",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_heads": 4}, r"d_model \(33\) must be divisible by num_heads \(4\)"),
        (
            {"num_heads": 3, "num_kv_heads": 2},
            r"num_heads \(3\) must be divisible by num_kv_heads \(2\)",
        ),
    ],
)
def test_bad_heads(new_parity, options, message):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(weights, **options)


@pytest.mark.parametrize("options", [{"num_heads": 0}, {"num_heads": -3}])
def test_heads_below_1(new_parity, options):
    """NumPy and Python refuse them: at the latest when attention is computed."""
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    with pytest.raises((ValueError, ZeroDivisionError)):
        MultiHeadAttention(weights, **options)(np.ones((B, T, D)))


def test_weights_of_other_key_value_heads(new_parity):
    module, _ = build(new_parity())
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    twin = MultiHeadAttention(weights, 3, num_kv_heads=1)
    with pytest.raises(ValueError, match="mismatch"):
        twin(np.ones((B, T, D)))
