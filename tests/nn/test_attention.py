"""Attention beyond its specs (`tformer.check`): dropout, limits, under `torch.func`."""

import math

import pytest
import torch
from torch.func import grad, vmap
from torch.testing import assert_close

from tformer.nn import (
    attention,
    attention_weights,
    causal_mask,
    length_mask,
    scaled_dot_product_attention,
)

# Longer than a block of queries; the kernel is given a mask, or there is no kernel.
IN_BLOCKS = pytest.mark.parametrize(
    "options", [{"window": 3}, {"softcap": 2.0}], ids=["kernel", "formula"]
)
LENGTH = 300


def draw(length, dtype=torch.float64):
    return torch.randn(2, 2, length, 8, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("options", [{}, {"softcap": 1.0}], ids=["kernel", "formula"])
def test_dropout_drops_whole_weights_and_keeps_the_sum(options):
    """Four equal weights, each dropped or doubled: the output is a half of a count."""
    query, value = torch.zeros(1, 1, 2000, 2), torch.ones(1, 1, 4, 2)
    key = torch.randn(1, 1, 4, 2)
    output = scaled_dot_product_attention(query, key, value, dropout_p=0.5, **options)
    doubled = output[0, 0] * 2
    assert_close(doubled, doubled.round())
    assert doubled.unique().numel() == 5
    assert abs(output.mean().item() - 1) < 0.05
    assert torch.equal(output[..., 0], output[..., 1])


@IN_BLOCKS
def test_the_backward_pass_drops_what_the_forward_pass_dropped(options):
    """Blocks are computed again for it; the output is linear in the values."""
    query, key, value = (draw(LENGTH) for _ in range(3))
    value.requires_grad_()
    output = scaled_dot_product_attention(
        query, key, value, is_causal=True, dropout_p=0.5, **options
    )
    (slope,) = torch.autograd.grad(output.sum(), value)
    assert_close((slope * value).sum(), output.sum())


@IN_BLOCKS
def test_training_keeps_neither_masks_nor_weights(options):
    T, kept = 600, []
    inputs = [draw(T).requires_grad_() for _ in range(3)]
    with torch.autograd.graph.saved_tensors_hooks(
        lambda x: kept.append(x.shape) or x, lambda x: x
    ):
        scaled_dot_product_attention(*inputs, is_causal=True, **options)
    assert not [shape for shape in kept if shape[-1] >= 256]


@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}], ids=["kernel", "formula"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_bias_of_minus_infinity_hides_as_a_mask_does(dtype, options):
    leaves = [draw(5, dtype).requires_grad_() for _ in range(3)]
    seen = torch.rand(2, 1, 5, 5) < 0.6
    seen[0, 0, 1] = False
    bias = torch.zeros(seen.shape).masked_fill(~seen, -math.inf)
    output = scaled_dot_product_attention(*leaves, bias=bias, **options)
    wanted = scaled_dot_product_attention(*leaves, seen, **options)
    near = 1e-6 if dtype == torch.float32 else 0.02
    assert_close(output, wanted, atol=near, rtol=near)
    assert not output[0, :, 1].any()
    assert not attention_weights(*leaves[:2], bias=bias)[0, :, 1].any()
    output.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)


@pytest.mark.parametrize("rows", [None, 1, 70])
def test_bfloat16_without_gradients_is_as_with_them(rows):
    query, key, value = torch.randn(3, 3, 2, 70, 8).bfloat16()
    mask = None if rows is None else torch.rand(3, 1, rows, 70) < 0.6
    if mask is not None:
        mask[1] = False
    with torch.no_grad():
        without = scaled_dot_product_attention(query, key, value, mask)
    leaf = query.requires_grad_()
    with_gradients = scaled_dot_product_attention(leaf, key, value, mask)
    assert_close(without, with_gradients, atol=0.02, rtol=0.02)
    assert mask is None or not without[1].any()


@pytest.mark.parametrize("at_a_time", [256, 4], ids=["all queries", "in blocks"])
@pytest.mark.parametrize("options", [{"is_causal": True}, {"softcap": 2.0}], ids=str)
def test_vmap_over_attention(options, at_a_time, monkeypatch):
    monkeypatch.setattr(attention, "QUERIES_AT_A_TIME", at_a_time)
    query, key, value = torch.randn(3, 5, 2, 4, 6, 4)
    inputs = query, key[:, :, ::2], value[:, :, ::2], torch.rand(5, 6, 6) < 0.7

    def attend(*inputs):
        return scaled_dot_product_attention(*inputs, **options)

    slope = grad(lambda *one: attend(*one).square().sum())
    for function in (attend, slope):
        each = [function(*one) for one in zip(*inputs, strict=True)]
        assert_close(vmap(function)(*inputs), torch.stack(each))


@pytest.mark.parametrize("of", range(5), ids=["query", "key", "value", "bias", "sinks"])
def test_grad_of_one_input_of_a_long_sequence(of):
    names = ["query", "key", "value", "bias", "sinks"]
    bias, sinks = torch.randn(LENGTH, LENGTH), torch.randn(2)
    given = [*torch.randn(3, 1, 2, LENGTH, 4), bias, sinks]

    def total(*inputs):
        options = dict(zip(names, inputs, strict=True), is_causal=True)
        return scaled_dot_product_attention(**options).square().sum()

    leaf = given[of].clone().requires_grad_()
    total(*given[:of], leaf, *given[of + 1 :]).backward()
    assert_close(grad(total, argnums=of)(*given), leaf.grad)


def test_masks_beyond_their_specs():
    assert causal_mask(2, window=1, device="meta").is_meta
    mask = length_mask(torch.tensor([2, 3, 0], dtype=torch.uint8))  # to the longest
    assert mask[:, 0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 0]]
