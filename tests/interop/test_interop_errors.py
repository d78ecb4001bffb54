"""What cannot be converted, and that nothing is lost without an error."""

import re
from functools import partial

import pytest
import torch
import torch.nn.functional as functional
from torch import nn
from torch.testing import assert_close

from tformer import (
    Block,
    FeedForward,
    GatedFeedForward,
    MultiHeadAttention,
    RMSNorm,
    transformer_block,
    transformer_encoder,
)
from tformer.interop import from_torch, to_torch
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.nn import ALiBi, LayerNorm

D, H, F = 12, 3, 7

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def attend(**options):
    return nn.MultiheadAttention(D, H, **options)


def layer(**parts):
    """Make a layer of torch's with other parts."""
    module = nn.TransformerDecoderLayer(D, H, F)
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def stack(num_layers=1, norm=None, kind=nn.TransformerEncoderLayer):
    return nn.TransformerEncoder(kind(D, H, F), num_layers, norm)


def dropping(name, p=0.5):
    module = layer()
    part = module.get_submodule(name)
    setattr(part, "p" if isinstance(part, nn.Dropout) else "dropout", p)
    return module


class OtherLayer(nn.TransformerEncoderLayer):
    def forward(self, src, *_, **__):
        return src


class OtherNorm(nn.LayerNorm):
    def forward(self, x):
        return x


class SameLayer(nn.TransformerEncoderLayer):
    """A subclass that computes the same."""


BARE = nn.LayerNorm(D, elementwise_affine=False)
OFF = "computes what its class does not, off by"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: attend(kdim=5), "kdim=5, vdim=12, "),
        (lambda: attend(vdim=9), "kdim=12, vdim=9, "),
        (lambda: attend(add_bias_kv=True), "bias_k=Parameter"),
        (lambda: attend(add_zero_attn=True), "add_zero_attn=True"),
        (lambda: attend(dropout=1.0), "dropout (1.0) must be in"),
        (lambda: layer(activation=functional.silu), "activation (silu) must be relu"),
        (lambda: layer(norm1=nn.RMSNorm(D)), "norm (RMSNorm("),
        (lambda: layer(norm2=nn.LayerNorm(D, 0.1)), "norm2 (LayerNorm((12,), eps=0.1"),
        (lambda: layer(norm2=BARE), "norm2 ("),
        (lambda: layer(norm3=nn.Identity()), "norm3 (Identity()) must be LayerNorm("),
        (lambda: layer(norm2=OtherNorm(D)), OFF),
        (lambda: layer(linear1=nn.Identity()), "part of another kind"),
        (lambda: layer(linear2=nn.Bilinear(2, 2, 2)), "linear2 (Bilinear("),
        (lambda: layer(dropout=nn.AlphaDropout(0.1)), "dropout (AlphaDropout("),
        (lambda: layer(adapter=nn.Linear(D, D)), "adapter (Linear("),
        (lambda: dropping("dropout1", 1.0), "dropout (1.0) must be in [0, 1)"),
        (lambda: dropping("dropout2"), "dropout2 (Dropout(p=0.5"),
        (lambda: dropping("self_attn"), "dropout=0.5"),
        (lambda: dropping("dropout3"), "dropout3 (Dropout(p=0.5"),
        (lambda: dropping("multihead_attn"), "dropout=0.5"),
        (lambda: stack(2, kind=OtherLayer), OFF),
        (lambda: stack(norm=nn.RMSNorm(D)), "norm (RMSNorm("),
        (lambda: stack(norm=BARE), "and have a weight"),
        (lambda: stack(0), "blocks (none) must be at least 1"),
    ],
)
def test_from_torch(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        from_torch(make())


def test_a_subclass_that_computes_the_same_is_taken():
    theirs = SameLayer(D, H, F, batch_first=True).eval()
    x = torch.randn(2, 5, D)
    assert_close(from_torch(theirs)(x), theirs(x))


@pytest.mark.parametrize("module", [nn.Linear(2, 2), transformer_block(D, H, F), None])
def test_something_else(raises, module):
    kind = type(module).__name__
    with raises(TypeError, f"module must be one of torch's kinds, not {kind}"):
        from_torch(module)
    with raises(TypeError, "module must be one of ours, not Identity"):
        to_torch(EncoderDecoder(nn.Identity(), nn.Identity()))


class OtherAttention(MultiHeadAttention):
    def forward(self, query, *_, **__):
        return query


def attention(**parts):
    return MultiHeadAttention(D, H, **parts)


def block(feed_forward=None, norm=LayerNorm, **options):
    network = feed_forward or FeedForward(D, F)
    return Block(attention(), network, partial(norm, D), **options)


def other_encoder():
    ours = transformer_encoder(D, H, F, 2)
    ours.blocks[1] = nn.Identity()
    return ours


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OtherAttention(D, H), OFF),
        (lambda: attention(window=5), "module has window, which torch's has not"),
        (lambda: attention(scale=0.5), "module has scale, which torch's has not"),
        (lambda: attention(softcap=50.0), "module has softcap, which torch's has not"),
        (lambda: attention(sinks=nn.Parameter(torch.zeros(H))), "module has sinks"),
        (lambda: attention(relative=ALiBi(H)), "module has relative, which"),
        (lambda: attention(q_norm=RMSNorm(4)), "module has q_norm, which"),
        (lambda: attention(head_dim=5), "module has head_dim, which"),
        (lambda: block(GatedFeedForward(D, F)), "a part or a placement that torch's"),
        (lambda: block(placement="sandwich"), "a part or a placement that torch's"),
        (lambda: block(residual_scale=0.5), "a part or a placement that torch's"),
        (lambda: block(norm=RMSNorm), "norm (RMSNorm("),
        (
            lambda: block(FeedForward(D, F, activation="relu2")),
            "activation ('relu2')",
        ),
        (other_encoder, "part of another kind"),
    ],
)
def test_to_torch(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        to_torch(make())


@pytest.mark.parametrize(
    ("make", "name", "convert"),
    [
        (lambda: MultiHeadAttention(D, H), "q_proj", to_torch),
        (lambda: transformer_encoder(D, H, F, 2), "blocks.1.feed_forward", to_torch),
        (layer, "multihead_attn", from_torch),
        (stack, "layers.0.linear1", from_torch),
        (attend, "", from_torch),
    ],
)
def test_a_hook_or_a_forward_that_changes_a_number_is_not_lost(make, name, convert):
    def twice(_, __, output):
        if isinstance(output, tuple):
            return 2 * output[0], *output[1:]
        return 2 * output

    module = make()
    part = module.get_submodule(name)
    handle = part.register_forward_hook(twice)
    with pytest.raises(ValueError, match=OFF):
        convert(module)
    handle.remove()
    convert(module)
    own = part.forward
    part.forward = lambda *args, **options: twice(0, 0, own(*args, **options))
    with pytest.raises(ValueError, match=OFF):
        convert(module)
