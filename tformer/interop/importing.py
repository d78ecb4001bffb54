"""From torch's own modules to ours.

D d_model
"""

from collections.abc import Callable
from functools import partial
from typing import Any, overload

import torch
import torch.nn.functional as functional
from torch import nn

from tformer.fast.dropout import Dropout
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
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: nn.TransformerEncoderLayer) -> EncoderLayer: ...
@overload
def from_torch(module: nn.TransformerEncoder) -> Encoder: ...
@overload
def from_torch(module: nn.TransformerDecoderLayer) -> DecoderLayer: ...
@overload
def from_torch(module: nn.TransformerDecoder) -> Decoder: ...
@overload
def from_torch(module: nn.Transformer) -> EncoderDecoder: ...
def from_torch(module: nn.Module) -> nn.Module:
    """Make our module from torch's: the same numbers, from a copy of its weights.

    Dtype, device, training mode, dropout and what is frozen stay as they are. Ours
    expects its inputs batch first, also where `module` does not. Masks differ too: see
    `attn_mask_from_torch` and `key_mask_from_torch`. Where a query may attend to
    nothing ours gives zeros and torch's, in most of its code paths, NaN.

    Args:
        module: `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`,
            `nn.TransformerEncoder`, `nn.TransformerDecoderLayer`,
            `nn.TransformerDecoder` or `nn.Transformer`.

    Returns:
        `MultiHeadAttention`, `EncoderLayer`, `Encoder`, `DecoderLayer`, `Decoder` or
        `EncoderDecoder`.

    Raises:
        TypeError: `module` is none of these.
        ValueError: it has what ours do not: `kdim` or `vdim` other than `embed_dim`,
            `add_bias_kv`, `add_zero_attn`, an activation other than relu and gelu,
            a norm other than `nn.LayerNorm`, a part with a `forward` of its own or
            with a hook.

    Example:
        >>> theirs = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        >>> x = torch.randn(3, 5, 8)
        >>> torch.allclose(from_torch(theirs)(x), theirs(x), atol=1e-6)
        True
    """
    return convert(module, FROM_TORCH)


def _attention_from_torch(old: nn.MultiheadAttention) -> MultiHeadAttention:
    for name, width in (("kdim", old.kdim), ("vdim", old.vdim)):
        if width != old.embed_dim:
            raise ValueError(f"{name} ({width}) must be embed_dim ({old.embed_dim})")
    adds_key = {
        "add_bias_kv": old.bias_k is not None,
        "add_zero_attn": old.add_zero_attn,
    }
    for name, value in adds_key.items():
        if value:
            raise ValueError(f"{name} (True) must be False: ours adds no key")

    with torch.device("meta"):
        new = MultiHeadAttention(old.embed_dim, old.num_heads, dropout=old.dropout)
    projections = (new.q_proj, new.k_proj, new.v_proj)
    for part, weight in zip(projections, old.in_proj_weight.chunk(3), strict=True):
        part.weight = copy_parameter(weight, of=old.in_proj_weight)  # (D, D)
        part.register_parameter("bias", None)
        as_before(old, part)
    if old.in_proj_bias is not None:
        for part, bias in zip(projections, old.in_proj_bias.chunk(3), strict=True):
            part.bias = copy_parameter(bias, of=old.in_proj_bias)  # (D,)
    new.out_proj = copy_linear("out_proj", old.out_proj, Linear)
    return as_before(old, new)


def _activation(activation: Any) -> str:
    if activation in (functional.relu, torch.relu) or isinstance(activation, nn.ReLU):
        return "relu"
    if activation is functional.gelu:
        return "gelu"
    if isinstance(activation, nn.GELU):
        return "gelu" if activation.approximate == "none" else "gelu_tanh"
    if isinstance(activation, partial) and activation.func is functional.gelu:
        tanh = activation.keywords.get("approximate") == "tanh"
        return "gelu_tanh" if tanh else "gelu"
    name = getattr(activation, "__name__", repr(activation))
    raise ValueError(f"activation ({name}) must be relu or gelu")


def _layer_from_torch(
    old: Any,
    kind: type[M],
    attentions: dict[str, str],
    residuals: dict[str, tuple[str, str]],
) -> M:
    linear1 = copy_linear("linear1", old.linear1, Linear)
    converted = {
        ours: _attention_from_torch(
            expect(theirs, getattr(old, theirs), nn.MultiheadAttention)
        )
        for ours, theirs in attentions.items()
    }
    with torch.device("meta"):
        new: Any = kind(
            linear1.in_features,
            old.self_attn.num_heads,
            linear1.out_features,
            activation=_activation(old.activation),
            norm_first=old.norm_first,
        )
    for name, attention in converted.items():
        setattr(new, name, attention)
    feed_forward = as_before(old, new.feed_forward)
    feed_forward.linear1 = linear1
    feed_forward.linear2 = copy_linear("linear2", old.linear2, Linear)
    feed_forward.dropout = copy_dropout("dropout", old.dropout, Dropout)
    for ours, (norm, dropout) in residuals.items():
        residual = as_before(old, getattr(new, ours))
        residual.norm = copy_norm(norm, getattr(old, norm), LayerNorm)
        residual.dropout = copy_dropout(dropout, getattr(old, dropout), Dropout)
    return as_before(old, new)


def _encoder_from_torch(old: nn.TransformerEncoder) -> Encoder:
    with torch.device("meta"):
        new = Encoder(1, 1, 1, 1)
    convert = FROM_TORCH[nn.TransformerEncoderLayer]
    return fill_stack(old, new, LayerNorm, nn.TransformerEncoderLayer, convert)


def _decoder_from_torch(old: nn.TransformerDecoder) -> Decoder:
    with torch.device("meta"):
        new = Decoder(1, 1, 1, 1)
    convert = FROM_TORCH[nn.TransformerDecoderLayer]
    return fill_stack(old, new, LayerNorm, nn.TransformerDecoderLayer, convert)


def _transformer_from_torch(old: nn.Transformer) -> EncoderDecoder:
    encoder = expect("custom_encoder", old.encoder, nn.TransformerEncoder)
    decoder = expect("custom_decoder", old.decoder, nn.TransformerDecoder)
    new = EncoderDecoder(_encoder_from_torch(encoder), _decoder_from_torch(decoder))
    return as_before(old, new)


FROM_TORCH: dict[type, Callable[[Any], Any]] = {
    nn.MultiheadAttention: _attention_from_torch,
    nn.TransformerEncoderLayer: lambda old: _layer_from_torch(
        old, EncoderLayer, ENCODER_ATTENTIONS, ENCODER_RESIDUALS
    ),
    nn.TransformerEncoder: _encoder_from_torch,
    nn.TransformerDecoderLayer: lambda old: _layer_from_torch(
        old, DecoderLayer, DECODER_ATTENTIONS, DECODER_RESIDUALS
    ),
    nn.TransformerDecoder: _decoder_from_torch,
    nn.Transformer: _transformer_from_torch,
}
