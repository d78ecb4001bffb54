"""Attention beyond its specs (`tformer.check`): dropout, widths, compiled."""

import pytest
import torch
from torch.testing import assert_close

from attention_inputs import DH, DV, G, S, draw
from tformer import attention_weights, scaled_dot_product_attention

# Longer than a block of queries; the kernel is given a mask, or there is no kernel.
IN_BLOCKS = pytest.mark.parametrize(
    "options", [{"window": 3}, {"softcap": 2.0}], ids=["kernel", "formula"]
)
LENGTH = 300


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
    query, key, value = (draw(2, LENGTH) for _ in range(3))
    value.requires_grad_()
    output = scaled_dot_product_attention(
        query, key, value, is_causal=True, dropout_p=0.5, **options
    )
    (slope,) = torch.autograd.grad(output.sum(), value)
    assert_close((slope * value).sum(), output.sum())


@pytest.mark.parametrize("width", [DH - 4, DV])
def test_values_may_be_narrower_or_wider_than_keys(width):
    query, key, value = draw(), draw(G, S), draw(G, S, width)
    weights = attention_weights(query, key)
    wanted = weights @ value.repeat_interleave(2, dim=1)
    assert_close(scaled_dot_product_attention(query, key, value), wanted)


@IN_BLOCKS
def test_one_graph(options):
    inputs = [draw(2, LENGTH) for _ in range(3)]
    torch.compiler.reset()
    compiled = torch.compile(
        scaled_dot_product_attention, fullgraph=True, backend="eager"
    )
    wanted = scaled_dot_product_attention(*inputs, is_causal=True, **options)
    assert_close(compiled(*inputs, is_causal=True, **options), wanted)
