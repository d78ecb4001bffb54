"""The block: where its norms stand, against GPT's layer and the formulas."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import FeedForward, LayerNorm
from tformer.nn.block import PLACEMENTS, Block
from tformer.nn.decoder import DecoderLayer
from tformer.nn.rms_norm import RMSNorm
from tformer.nn.self_attention import SelfAttention

B, T, D = 2, 5, 12
RMS = partial(RMSNorm, D)


def built(placement="pre", norm=RMS, dropout=0.0, bias=False):
    return Block(
        SelfAttention(D, 3, bias=bias),
        FeedForward(D, 17, bias=bias),
        norm,
        placement=placement,
        dropout=dropout,
    )


@pytest.mark.usefixtures("float64")
def test_the_formulas(randomised):
    x = torch.randn(B, T, D)
    pre, sandwich, post = (randomised(built(each)) for each in PLACEMENTS)
    y = x + pre.attention(pre.attention_norm(x))
    assert_close(pre(x), y + pre.feed_forward(pre.feed_forward_norm(y)))
    s = sandwich
    y = x + s.attention_norm2(s.attention(s.attention_norm(x)))
    wanted = y + s.feed_forward_norm2(s.feed_forward(s.feed_forward_norm(y)))
    assert_close(s(x), wanted)
    y = post.attention_norm(x + post.attention(x))
    assert_close(post(x), post.feed_forward_norm(y + post.feed_forward(y)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.usefixtures("float64")
def test_equals_the_decoders_layer(norm_first, randomised):
    theirs = randomised(
        DecoderLayer(D, 3, 17, cross_attention=False, norm_first=norm_first)
    )
    ours = built("pre" if norm_first else "post", partial(LayerNorm, D), bias=True)
    ours.attention.load_state_dict(theirs.self_attn.state_dict())
    ours.feed_forward.load_state_dict(theirs.feed_forward.state_dict())
    ours.attention_norm.load_state_dict(theirs.self_attn_residual.norm.state_dict())
    state = theirs.feed_forward_residual.norm.state_dict()
    ours.feed_forward_norm.load_state_dict(state)
    x = torch.randn(B, T, D)
    assert torch.equal(ours(x), theirs(x, is_causal=True))


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_its_norms(placement):
    module = built(placement)
    norms = [name for name, each in module.named_children() if type(each) is RMSNorm]
    assert norms == ["attention_norm", "feed_forward_norm"] + (
        ["attention_norm2", "feed_forward_norm2"] if placement == "sandwich" else []
    )


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_dropout_is_of_what_is_added(placement):
    module, x = built(placement, dropout=0.9), torch.randn(B, T, D)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))
    module.train()
    module.dropout.p = 1.0
    norm = nn.Sequential(module.attention_norm, module.feed_forward_norm)
    assert torch.equal(module(x), norm(x) if placement == "post" else x)


@torch.no_grad()
def test_the_cache_is_the_attentions():
    module, x = built(), torch.randn(B, T, D)
    cache = module.new_cache(T)
    parts = [module(part, cache=cache) for part in x.split(2, dim=1)]
    assert_close(torch.cat(parts, dim=1), module(x))
    assert cache.length == T


def test_any_module_can_stand_in_it():
    class Cumulative(nn.Module):
        def forward(self, x, *, cache=None):
            assert cache is None
            return x.cumsum(1)

    module = Block(Cumulative(), nn.Identity(), nn.Identity)
    x = torch.randn(B, T, D)
    assert_close(module(x), 2 * (x + x.cumsum(1)))


def test_errors(raises):
    message = "placement ('first') must be one of pre, sandwich, post"
    with raises(ValueError, message):
        built("first")
    with raises(ValueError, "dropout (-0.1) must be in [0, 1)"):
        built(dropout=-0.1)
