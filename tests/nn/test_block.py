"""The block: where its norms stand, against the formulas and torch's layers."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer.interop import from_torch
from tformer.nn import (
    Block,
    FeedForward,
    MultiHeadAttention,
    RMSNorm,
    causal_mask,
    combine_masks,
    length_mask,
    record_weights,
    transformer_block,
)
from tformer.nn.block import PLACEMENTS

B, T, S, H, D, F = 2, 5, 7, 3, 21, 13
ORDERS = pytest.mark.parametrize("norm_first", [False, True])
CROSSES = pytest.mark.parametrize("cross", [False, True], ids=["alone", "cross"])


def built(placement="pre", dropout=0.0, cross_attention=None):
    return Block(
        MultiHeadAttention(D, H, bias=False),
        FeedForward(D, F, bias=False),
        partial(RMSNorm, D),
        cross_attention=cross_attention,
        placement=placement,
        dropout=dropout,
    )


@pytest.mark.usefixtures("float64")
def test_the_formulas(randomised):
    x = torch.randn(B, T, D)
    blocks = {each: randomised(built(each)) for each in PLACEMENTS}
    for b in blocks.values():  # f and g are the sub-layers, n and m their norms
        f, g, n, m = b.attention, b.feed_forward, b.attention_norm, b.feed_forward_norm
        if b.placement == "pre":
            y = x + f(n(x))
            wanted = y + g(m(y))
        elif b.placement == "post":
            y = n(x + f(x))
            wanted = m(y + g(y))
        elif b.placement == "sandwich":
            y = x + b.attention_norm2(f(n(x)))
            wanted = y + b.feed_forward_norm2(g(m(y)))
        else:
            y = x + n(f(x))
            wanted = y + m(g(y))
        assert_close(b(x), wanted)


@CROSSES
@ORDERS
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masks", ["none", "causal", "padding", "all"])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_layers(cross, norm_first, bias, masks, randomised):
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    theirs = randomised(kind(D, H, F, 0.0, "gelu", 0.1, True, norm_first, bias))
    ours = from_torch(theirs)
    inputs = [torch.randn(B, n, D, requires_grad=True) for n in (T, S)[: 1 + cross]]
    own, of_memory, real, memory_real = None, None, None, None
    if masks in ("causal", "all"):
        own = causal_mask(T)
    if masks == "all":
        of_memory = torch.rand(T, S) < 0.7
        of_memory[:, 0] = True
    if masks in ("padding", "all"):
        real, memory_real = (length_mask(torch.tensor(n)) for n in ([T, 2], [3, S]))
    hidden = [None if m is None else ~m for m in (own, of_memory)]
    padding = [None if m is None else ~m[:, 0, 0] for m in (real, memory_real)]
    n = len(inputs)
    wanted = theirs(*inputs, *hidden[:n], *padding[:n])
    ours_masks = {
        "attn_mask": combine_masks(own, real),
        "memory_mask": combine_masks(of_memory, memory_real),
    }
    output = ours(*inputs, **ours_masks)
    assert_close(output, wanted)
    with record_weights(ours):
        assert_close(ours(*inputs, **ours_masks), wanted)
    both = [torch.autograd.grad(y.square().sum(), inputs) for y in (output, wanted)]
    assert_close(*both)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_dropout_is_of_what_is_added(placement):
    cross = placement in PLACEMENTS[:2]
    block = built(placement, 0.9, MultiHeadAttention(D, H) if cross else None)
    given = torch.randn(B, T, D), torch.randn(B, S, D) if cross else None
    assert not torch.equal(block(*given), block(*given))
    block.eval()
    assert torch.equal(block(*given), block(*given))
    block.train()
    block.dropout.p = 1.0
    wanted = given[0]
    if placement == "post":
        norms = block.attention_norm, block.cross_attention_norm
        wanted = nn.Sequential(*norms, block.feed_forward_norm)(wanted)
    assert torch.equal(block(*given), wanted)


@torch.no_grad()
def test_the_cache_is_the_attentions():
    block, x = built(), torch.randn(B, T, D)
    cache = block.new_cache(T)
    parts = [block(part, is_causal=True, cache=cache) for part in x.split(2, dim=1)]
    assert_close(torch.cat(parts, dim=1), block(x, is_causal=True))
    assert cache.sequence.length == T


def test_beams_read_the_memory_of_their_source():
    block = transformer_block(D, H, F, cross_attention=True)
    x, memory = torch.randn(3 * B, T, D), torch.randn(B, S, D)
    mask = length_mask(torch.tensor([S, 2]))
    one_by_one = block(
        x, memory.repeat_interleave(3, 0), None, mask.repeat_interleave(3, 0)
    )
    assert_close(block(x, memory, None, mask), one_by_one)


def test_any_module_can_stand_in_it():
    class Cumulative(nn.Module):
        def forward(self, x, *, is_causal, cache):
            assert is_causal
            assert cache is None
            return x.cumsum(1)

    block = Block(Cumulative(), nn.Identity(), nn.Identity)
    x = torch.randn(B, T, D)
    assert_close(block(x, is_causal=True), 2 * (x + x.cumsum(1)))


def test_every_option_reaches_its_place():
    rates = {"dropout": 0.25, "ff_dropout": 0.75, "eps": 0.5}
    parts = {"num_kv_heads": 1, "activation": "gelu", "norm_first": True, "bias": False}
    block = transformer_block(D, H, F, cross_attention=True, **rates, **parts)
    for attention in (block.attention, block.cross_attention):
        assert (attention.dropout, attention.num_kv_heads) == (0.25, 1)
    assert block.attention is not block.cross_attention
    assert block.feed_forward.linear1.out_features == F
    assert block.feed_forward.activation == "gelu"
    assert block.feed_forward.dropout.p == 0.75
    assert block.dropout.p == 0.25
    assert block.placement == "pre"
    norms = [x for name, x in block.named_children() if name.endswith("_norm")]
    assert [norm.eps for norm in norms] == 3 * [0.5]
    assert not any(name.endswith("bias") for name, _ in block.named_parameters())
    usual = transformer_block(D, H, F, dropout=0.25)
    assert usual.feed_forward.dropout.p == 0.25  # as everywhere
    assert usual.placement == "post"  # the paper's


def test_bad_input(raises):
    with raises(ValueError, f"placement ('first') must be one of {PLACEMENTS}"):
        built("first")
    with raises(ValueError, "placement ('output') must be one of ('post', 'pre')"):
        built("output", cross_attention=MultiHeadAttention(D, H))
    with raises(ValueError, "dropout (-0.1) must be in [0, 1)"):
        built(dropout=-0.1)
    with raises(ValueError, "d_model (21) must be divisible by num_heads (4)"):
        transformer_block(D, 4, F)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    alone, across = (transformer_block(D, H, F, cross_attention=c) for c in (0, 1))
    with raises(ValueError, "memory must be given with cross-attention, and only then"):
        alone(x, memory)
    with raises(ValueError, "memory must be given with cross-attention, and only then"):
        across(x)
    for rows in (0, 3, 4):
        message = f"x has 2 rows, not a multiple of memory's {rows}"
        with raises(ValueError, message):
            across(x, torch.randn(rows, S, D))
    with torch.no_grad():
        cache = across.new_cache(T)
        across(x[:, :1], memory, cache=cache)
        with raises(ValueError, "the cache holds keys and values of another memory"):
            across(x[:, 1:], memory.clone(), cache=cache)
