"""From a torch module to its NumPy twin, without importing torch."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tformer.reference.decoder import Decoder, DecoderLayer
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.encoder import Encoder, EncoderLayer
from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.linear import Linear
from tformer.reference.norm import LayerNorm
from tformer.reference.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from tformer.reference.residual import Residual
from tformer.reference.transformer import EncoderDecoder, Transformer
from tformer.reference.weights import Weights, parts


def from_torch(module: Any) -> Any:
    """Make the twin of a torch module, with a copy of its weights as arrays.

    The twin computes what the module does in `eval()`. Arrays keep the dtype, except
    that bfloat16, which NumPy does not have, becomes float32.

    Args:
        module: one of tformer's modules, or one of torch's own that
            `tformer.interop.from_torch` takes.

    Returns:
        the object of the same name in `tformer.reference`.

    Raises:
        TypeError: there is no twin of this module.
    """
    # By name, so that a class pasted from a chapter into a script has its twin too.
    for ancestor in type(module).__mro__:
        name = ancestor.__name__
        if name in TORCHS_OWN and ancestor.__module__.startswith("torch.nn"):
            return from_torch(import_module("tformer.interop").from_torch(module))
        if name in TWINS:
            tensors = module.state_dict().items()
            return TWINS[name](module, {key: _array(tensor) for key, tensor in tensors})
    raise TypeError(
        f"module must be one of {', '.join([*TWINS, *sorted(TORCHS_OWN)])}, "
        f"not {type(module).__name__}"
    )


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.array(tensor.numpy())  # a copy: training the module leaves the twin be


def _attention(module: Any, weights: Weights) -> MultiHeadAttention:
    return MultiHeadAttention(
        weights, module.num_heads, num_kv_heads=module.num_kv_heads
    )


def _residual(module: Any, weights: Weights) -> Residual:
    return Residual(weights, norm_first=module.norm_first, eps=module.norm.eps)


def _options(layer: Any) -> dict[str, Any]:
    return {
        "num_heads": layer.self_attn.num_heads,
        "num_kv_heads": layer.self_attn.num_kv_heads,
        "activation": layer.feed_forward.activation,
        "norm_first": layer.self_attn_residual.norm_first,
        "eps": layer.self_attn_residual.norm.eps,
    }


def _encoder_layer(module: Any, weights: Weights) -> EncoderLayer:
    return EncoderLayer(weights, **_options(module))


def _decoder_layer(module: Any, weights: Weights) -> DecoderLayer:
    return DecoderLayer(weights, **_options(module))


def _encoder(module: Any, weights: Weights) -> Encoder:
    twin = Encoder(weights, **_options(module.layers[0]))
    if twin.norm is not None:
        twin.norm.eps = module.norm.eps  # in torch's stacks it may be another
    return twin


def _decoder(module: Any, weights: Weights) -> Decoder:
    twin = Decoder(weights, **_options(module.layers[0]))
    if twin.norm is not None:
        twin.norm.eps = module.norm.eps
    return twin


def _encoder_decoder(module: Any, weights: Weights) -> EncoderDecoder:
    of = parts(weights, "encoder", "decoder")
    return EncoderDecoder(
        _encoder(module.encoder, of["encoder"]), _decoder(module.decoder, of["decoder"])
    )


TWINS: dict[str, Callable[[Any, Weights], Any]] = {
    "Linear": lambda _, weights: Linear(weights),
    "MultiHeadAttention": _attention,
    "SinusoidalPositionalEncoding": lambda module, _: SinusoidalPositionalEncoding(
        module.d_model
    ),
    "LearnedPositionalEmbedding": lambda _, weights: LearnedPositionalEmbedding(
        weights
    ),
    "FeedForward": lambda module, weights: FeedForward(
        weights, activation=module.activation
    ),
    "LayerNorm": lambda module, weights: LayerNorm(weights, module.eps),
    "Residual": _residual,
    "TokenEmbedding": lambda _, weights: TokenEmbedding(weights),
    "EncoderLayer": _encoder_layer,
    "Encoder": _encoder,
    "DecoderLayer": _decoder_layer,
    "Decoder": _decoder,
    "EncoderDecoder": _encoder_decoder,
    "Transformer": lambda module, weights: Transformer(weights, module.config),
}

TORCHS_OWN = frozenset(
    {
        "MultiheadAttention",
        "TransformerEncoderLayer",
        "TransformerEncoder",
        "TransformerDecoderLayer",
        "TransformerDecoder",
        "Transformer",
    }
)
