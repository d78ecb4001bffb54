"""From our modules to torch's own.

H heads · G key/value heads · D d_model · Dh head_dim
"""

from collections.abc import Callable
from typing import Any, overload

import torch
from torch import Tensor, nn

from tformer.fast.linear import Linear
from tformer.interop.parts import (
    DECODER_ATTENTIONS,
    DECODER_RESIDUALS,
    ENCODER_ATTENTIONS,
    ENCODER_RESIDUALS,
    M,
    as_before,
    convert,
    copy_dropout,
    copy_linear,
    copy_norm,
    copy_parameter,
    expect,
    fill_stack,
)
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.nn.decoder import Decoder, DecoderLayer
from tformer.nn.encoder import Encoder, EncoderLayer
from tformer.nn.feed_forward import ACTIVATIONS, FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.residual import Residual


@overload
def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention: ...
@overload
def to_torch(module: EncoderLayer) -> nn.TransformerEncoderLayer: ...
@overload
def to_torch(module: Encoder) -> nn.TransformerEncoder: ...
@overload
def to_torch(module: DecoderLayer) -> nn.TransformerDecoderLayer: ...
@overload
def to_torch(module: Decoder) -> nn.TransformerDecoder: ...
@overload
def to_torch(module: EncoderDecoder) -> nn.Transformer: ...
def to_torch(module: nn.Module) -> nn.Module:
    """Make torch's module from ours, with `batch_first=True`: the same numbers.

    torch has no grouped-query attention: each shared key/value head is copied to every
    head that reads it. The result is exact, but as large as attention without groups.

    Args:
        module: `MultiHeadAttention`, `EncoderLayer`, `Encoder`, `DecoderLayer`,
            `Decoder` or `EncoderDecoder`.

    Returns:
        the torch module that `from_torch` would make it from.

    Raises:
        TypeError: `module` is none of these.
        ValueError: a part has a `forward` of its own or a hook, or pre-norm and
            post-norm are mixed in a layer.
    """
    return convert(module, TO_TORCH)


def _attention_to_torch(old: MultiHeadAttention) -> nn.MultiheadAttention:
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    q, k, v, out = (
        expect(name, getattr(old, name), nn.Linear, Linear) for name in names
    )
    has_bias = any(part.bias is not None for part in (q, k, v, out))
    with torch.device("meta"):
        new = nn.MultiheadAttention(
            old.d_model, old.num_heads, old.dropout, bias=has_bias, batch_first=True
        )
    weights = (q.weight, _every_head(k.weight, old), _every_head(v.weight, old))
    joined = torch.cat(weights)  # (3 · D, D)
    new.in_proj_weight = copy_parameter(joined, of=q.weight)
    new.out_proj.weight = copy_parameter(out.weight)
    if has_bias:  # torch knows all biases or none
        q_bias, k_bias, v_bias, out_bias = (
            torch.zeros_like(part.weight[:, 0]) if part.bias is None else part.bias
            for part in (q, k, v, out)
        )
        joined = torch.cat(
            (q_bias, _every_head(k_bias, old), _every_head(v_bias, old))
        )  # (3 · D,)
        new.in_proj_bias = copy_parameter(joined, of=q_bias)
        new.out_proj.bias = copy_parameter(out_bias)
    as_before(out, new.out_proj)
    return as_before(old, new)


def _every_head(x: Tensor, old: MultiHeadAttention) -> Tensor:
    """Copy the part of each key/value head to the heads of its group."""
    heads = x.reshape(old.num_kv_heads, old.head_dim, *x.shape[1:])  # (G, Dh, …)
    copies = old.num_heads // old.num_kv_heads
    return heads.repeat_interleave(copies, dim=0).flatten(0, 1)  # (H · Dh, …)


def _layer_to_torch(
    old: Any,
    kind: type[M],
    attentions: dict[str, str],
    residuals: dict[str, tuple[str, str]],
) -> M:
    feed_forward = expect("feed_forward", old.feed_forward, FeedForward)
    orders = {
        expect(name, getattr(old, name), Residual).norm_first for name in residuals
    }
    if len(orders) > 1:
        raise ValueError("norm_first (True and False) must be one for the whole layer")
    linear1 = copy_linear("linear1", feed_forward.linear1, nn.Linear)
    converted = {
        theirs: _attention_to_torch(
            expect(ours, getattr(old, ours), MultiHeadAttention)
        )
        for ours, theirs in attentions.items()
    }
    with torch.device("meta"):
        new: Any = kind(
            linear1.in_features,
            old.self_attn.num_heads,
            linear1.out_features,
            activation=ACTIVATIONS[feed_forward.activation],
            batch_first=True,
            norm_first=orders.pop(),
        )
    for name, attention in converted.items():
        setattr(new, name, attention)
    new.linear1 = linear1
    new.linear2 = copy_linear("linear2", feed_forward.linear2, nn.Linear)
    new.dropout = copy_dropout("dropout", feed_forward.dropout, nn.Dropout)
    for ours, (norm, dropout) in residuals.items():
        residual = getattr(old, ours)
        setattr(new, norm, copy_norm(f"{ours}.norm", residual.norm, nn.LayerNorm))
        setattr(
            new, dropout, copy_dropout(f"{ours}.dropout", residual.dropout, nn.Dropout)
        )
    return as_before(old, new)


def _encoder_to_torch(old: Encoder) -> nn.TransformerEncoder:
    with torch.device("meta"):
        layer = nn.TransformerEncoderLayer(1, 1, 1)
        # A nested tensor would leave zeros at padding, where the layers have numbers.
        new = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    new.num_layers = len(old.layers)
    return fill_stack(old, new, nn.LayerNorm, EncoderLayer, TO_TORCH[EncoderLayer])


def _decoder_to_torch(old: Decoder) -> nn.TransformerDecoder:
    with torch.device("meta"):
        new = nn.TransformerDecoder(nn.TransformerDecoderLayer(1, 1, 1), 1)
    new.num_layers = len(old.layers)
    return fill_stack(old, new, nn.LayerNorm, DecoderLayer, TO_TORCH[DecoderLayer])


def _transformer_to_torch(old: EncoderDecoder) -> nn.Transformer:
    with torch.device("meta"):
        new = nn.Transformer(1, 1, 1, 1, 1, batch_first=True)
    new.encoder = _encoder_to_torch(expect("encoder", old.encoder, Encoder))
    new.decoder = _decoder_to_torch(expect("decoder", old.decoder, Decoder))
    attention = new.encoder.layers[0].self_attn
    new.d_model, new.nhead = attention.embed_dim, attention.num_heads
    return as_before(old, new)


TO_TORCH: dict[type, Callable[[Any], Any]] = {
    MultiHeadAttention: _attention_to_torch,
    EncoderLayer: lambda old: _layer_to_torch(
        old, nn.TransformerEncoderLayer, ENCODER_ATTENTIONS, ENCODER_RESIDUALS
    ),
    Encoder: _encoder_to_torch,
    DecoderLayer: lambda old: _layer_to_torch(
        old, nn.TransformerDecoderLayer, DECODER_ATTENTIONS, DECODER_RESIDUALS
    ),
    Decoder: _decoder_to_torch,
    EncoderDecoder: _transformer_to_torch,
}
