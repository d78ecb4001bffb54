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
from tformer.reference.weights import Weights


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
        make = TWINS.get(name)
        if make is None:  # a twin may say itself how it is made
            twin = getattr(import_module("tformer.reference"), name, None)
            make = getattr(twin, "from_torch", None)
        if make is not None:
            tensors = module.state_dict().items()
            return make(module, {key: _array(tensor) for key, tensor in tensors})
    raise TypeError(
        f"module must be one of {', '.join([*TWINS, *sorted(TORCHS_OWN)])}, "
        f"not {type(module).__name__}"
    )


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.array(tensor.numpy())  # a copy: training the module leaves the twin be


def _heads(m: Any) -> dict[str, Any]:
    return {"num_heads": m.num_heads, "num_kv_heads": m.num_kv_heads}


def _around(m: Any) -> dict[str, Any]:
    return {"norm_first": m.norm_first, "eps": m.norm.eps}


def _layer(m: Any) -> dict[str, Any]:
    activation = {"activation": m.feed_forward.activation}
    return _heads(m.self_attn) | _around(m.self_attn_residual) | activation


def _stack(kind: Any, module: Any, weights: Weights) -> Any:
    twin = kind(weights, **_layer(module.layers[0]))
    if twin.norm is not None:
        twin.norm.eps = module.norm.eps  # in torch's stacks it may be another
    return twin


# For each name, what makes the twin of a module from it and its weights. A twin with a
# `from_torch(module, weights)` of its own needs no line here.
TWINS: dict[str, Callable[[Any, Weights], Any]] = {
    "Linear": lambda _, w: Linear(w),
    "MultiHeadAttention": lambda m, w: MultiHeadAttention(w, **_heads(m)),
    "SinusoidalPositionalEncoding": lambda m, _: SinusoidalPositionalEncoding(
        m.d_model
    ),
    "LearnedPositionalEmbedding": lambda _, w: LearnedPositionalEmbedding(w),
    "FeedForward": lambda m, w: FeedForward(w, activation=m.activation),
    "LayerNorm": lambda m, w: LayerNorm(w, m.eps),
    "Residual": lambda m, w: Residual(w, **_around(m)),
    "TokenEmbedding": lambda m, w: TokenEmbedding(w, scale=m.scale),
    "EncoderLayer": lambda m, w: EncoderLayer(w, **_layer(m)),
    "DecoderLayer": lambda m, w: DecoderLayer(w, **_layer(m)),
    "Encoder": lambda m, w: _stack(Encoder, m, w),
    "Decoder": lambda m, w: _stack(Decoder, m, w),
    "EncoderDecoder": lambda m, _: EncoderDecoder(
        from_torch(m.encoder), from_torch(m.decoder)
    ),
    "Transformer": lambda m, w: Transformer(w, m.config),
}
TORCHS_OWN = {
    "MultiheadAttention",
    "TransformerEncoderLayer",
    "TransformerEncoder",
    "TransformerDecoderLayer",
    "TransformerDecoder",
    "Transformer",
}
