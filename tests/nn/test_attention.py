"""What attention computes: its definition, its gradients, its properties."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from attention_inputs import CODE_PATHS, DV, B, G, H, S, T, by_formula, draw
from tformer import attention_weights, causal_mask, scaled_dot_product_attention

MASKS = {
    "none": None,
    "all rows": (T, S),
    "scalar": (1, 1, 1, 1),
    "keys": (1, 1, 1, S),
    "queries": (1, 1, T, 1),
    "heads": (1, H, 1, S),
    "padding": (B, 1, 1, S),
    "full": (B, H, T, S),
}


@CODE_PATHS
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"scale": 0.7}, {"softcap": 0.6, "is_causal": True}],
    ids=str,
)
def test_is_its_definition(attend_slowly, mask, options, attend):
    query, key, value = draw(), draw(G, S), draw(G, S, DV)
    shape = MASKS[mask]
    attn_mask = None if shape is None else torch.rand(shape) < 0.7
    bias = None if shape is None else torch.randn(shape, dtype=torch.float64)
    for given_bias in (None, bias):
        arguments = {"bias": given_bias, **options}
        wanted, weights = attend_slowly(query, key, value, attn_mask, **arguments)
        output = attend(query, key, value, attn_mask, **arguments)
        assert output.shape == (B, H, T, DV)
        assert_close(output, wanted)
        ours = attention_weights(query, key, attn_mask, **arguments)
        assert ours.shape == (B, H, T, S)
        assert_close(ours, weights)


def test_arguments_may_be_named():
    query, key = draw(dtype=torch.float16), draw(G, S, dtype=torch.float16)
    wanted = attention_weights(query, key)
    assert torch.equal(attention_weights(query=query, key=key), wanted)
    assert torch.equal(attention_weights(key=key, query=query), wanted)


@CODE_PATHS
def test_closed_form(attend):
    """Scores 0 and √2 · 1 / √2 = 1 make weights [1, e] / (1 + e)."""
    query = torch.tensor([[[[0.0, math.sqrt(2)]]]], dtype=torch.float64)
    identity = torch.eye(2, dtype=torch.float64)[None, None]
    output = attend(query, identity, identity)
    wanted = torch.tensor([1, math.e], dtype=torch.float64) / (1 + math.e)
    assert_close(output[0, 0, 0], wanted)


@CODE_PATHS
@pytest.mark.parametrize("lengths", [(T, S), (S, T), (1, S), (T, T)])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_equals_torch(lengths, groups, attend):
    query, key = draw(H, lengths[0]), draw(groups, lengths[1])
    value = draw(groups, lengths[1])
    attn_mask = torch.rand(B, 1, *lengths) < 0.7
    attn_mask[..., 0] = True
    wanted = F.scaled_dot_product_attention(
        query,
        key.repeat_interleave(H // groups, dim=1),
        value.repeat_interleave(H // groups, dim=1),
        attn_mask,
        scale=0.3,
    )
    output = attend(query, key, value, attn_mask, scale=0.3)
    assert_close(output, wanted)


def test_causal_equals_torch_where_lengths_do():
    query, key, value = draw(), draw(), draw()
    wanted = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    output = scaled_dot_product_attention(query, key, value, is_causal=True)
    assert_close(output, wanted)


@CODE_PATHS
def test_the_last_query_lines_up_with_the_last_key(attend):
    """As in decoding with a cache: new queries against the whole past."""
    query, key, value = draw(H, S), draw(H, S), draw(H, S)
    whole = attend(query, key, value, is_causal=True)
    for new in (1, 2, 5):
        newest = attend(query[:, :, -new:], key, value, is_causal=True)
        assert_close(newest, whole[:, :, -new:])


def test_weights_are_probabilities():
    query, key = draw() * 3, draw(G, S)
    weights = attention_weights(query, key)
    assert weights.shape == (B, H, T, S)
    assert (weights > 0).all()
    assert_close(weights.sum(dim=-1), torch.ones(B, H, T, dtype=torch.float64))
    assert weights.max() > 0.5
    value = draw(G, S)
    full_value = value.repeat_interleave(H // G, dim=1)
    output = scaled_dot_product_attention(query, key, value)
    assert_close(output, weights @ full_value)


@CODE_PATHS
def test_dropout_drops_whole_weights_and_keeps_the_sum(attend):
    """Four equal weights, each dropped or doubled: the output is a half of a count."""
    query, value = torch.zeros(1, 1, 2000, 2), torch.ones(1, 1, 4, 2)
    key = torch.randn(1, 1, 4, 2)
    output = attend(query, key, value, dropout_p=0.5)
    doubled = output[0, 0] * 2
    assert_close(doubled, doubled.round())
    assert doubled.unique().numel() == 5
    assert abs(output.mean().item() - 1) < 0.05
    assert torch.equal(output[..., 0], output[..., 1])


def test_every_argument_changes_the_output():
    query, key, value = draw(), draw(G, S), draw(G, S)
    plain = scaled_dot_product_attention(query, key, value)
    weights = attention_weights(query, key)
    for options in (
        {"attn_mask": torch.rand(T, S) < 0.5},
        {"bias": torch.randn(T, S)},
        {"is_causal": True},
        {"scale": 0.5},
        {"softcap": 0.5},
        {"dropout_p": 0.5},
    ):
        changed = scaled_dot_product_attention(query, key, value, **options)
        assert (changed - plain).abs().max() > 1e-3, options
        if "dropout_p" not in options:
            changed = attention_weights(query, key, **options)
            assert (changed - weights).abs().max() > 1e-3, options
    for i in range(3):
        inputs = [query, key, value]
        inputs[i] = inputs[i] + torch.randn_like(inputs[i])
        changed = scaled_dot_product_attention(*inputs)
        assert (changed - plain).abs().max() > 1e-3, i


@CODE_PATHS
@given(sizes=st.tuples(*[st.sampled_from([2, 3, 5, 7])] * 4), at=st.integers(0, 6))
def test_the_future_leaves_the_past_alone(sizes, at, attend):
    heads, length, batch, width = sizes
    inputs = [draw(heads, length, width, batch=batch) for _ in range(3)]
    later = [x.clone() for x in inputs]
    at = at % length
    for x in later:
        x[:, :, at] += 1
    before, after = (attend(*x, is_causal=True) for x in (inputs, later))
    assert torch.equal(before[:, :, :at], after[:, :, :at])
    assert not torch.allclose(before[:, :, at:], after[:, :, at:])


@CODE_PATHS
@given(length=st.sampled_from([2, 3, 5]), key_len=st.sampled_from([3, 5, 7]))
def test_a_masked_key_has_no_gradient(length, key_len, attend):
    query, key, value = draw(length=length), draw(G, key_len), draw(G, key_len)
    key.requires_grad_()
    value.requires_grad_()
    attn_mask = torch.ones(B, 1, 1, key_len, dtype=torch.bool)
    attn_mask[0, ..., 1] = False
    output = attend(query, key, value, attn_mask)
    output.square().sum().backward()
    for x in (key, value):
        assert (x.grad[0, :, 1] == 0).all()
        assert (x.grad[0, :, 0] != 0).all()
        assert (x.grad[1] != 0).all()


@CODE_PATHS
def test_gradients_are_right(attend):
    inputs = [draw(2, 3, 3), draw(1, 5, 3), draw(1, 5, 2), draw(2, 3, 5)]
    for x in inputs:
        x.requires_grad_()
    attn_mask = causal_mask(3, 5)

    def function(query, key, value, bias):
        return attend(query, key, value, attn_mask, bias=bias)

    assert torch.autograd.gradcheck(function, inputs)
    if attend is by_formula:
        assert torch.autograd.gradgradcheck(function, inputs)


def test_gradients_of_the_weights_are_right():
    inputs = [x.requires_grad_() for x in (draw(2, 3, 3), draw(1, 5, 3))]
    mask = causal_mask(3, 5)

    def function(query, key):
        return attention_weights(query, key, mask, softcap=0.8)

    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)
