"""The Transformer, executable: attention, heads, positions, encoder and decoder.

Names are imported when they are first used, so that `import tformer.reference`, the
NumPy twin, does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tformer.attention import scaled_dot_product_attention
    from tformer.config import TransformerConfig
    from tformer.decoder import Decoder, DecoderLayer
    from tformer.embedding import TokenEmbedding
    from tformer.encoder import Encoder, EncoderLayer
    from tformer.feed_forward import FeedForward
    from tformer.heads import MultiHeadAttention
    from tformer.masks import (
        causal_mask,
        combine_masks,
        length_mask,
        sliding_window_mask,
    )
    from tformer.norm import LayerNorm
    from tformer.positions import (
        LearnedPositionalEmbedding,
        SinusoidalPositionalEncoding,
    )
    from tformer.residual import Residual
    from tformer.transformer import (
        AttentionWeights,
        EncoderDecoder,
        Transformer,
    )

__version__ = "0.1.0"

__all__ = [
    "AttentionWeights",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "LearnedPositionalEmbedding",
    "MultiHeadAttention",
    "Residual",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "causal_mask",
    "combine_masks",
    "length_mask",
    "scaled_dot_product_attention",
    "sliding_window_mask",
]

_NAMES_OF = {
    "attention": ["scaled_dot_product_attention"],
    "masks": ["causal_mask", "combine_masks", "length_mask", "sliding_window_mask"],
    "heads": ["MultiHeadAttention"],
    "positions": ["LearnedPositionalEmbedding", "SinusoidalPositionalEncoding"],
    "feed_forward": ["FeedForward"],
    "norm": ["LayerNorm"],
    "residual": ["Residual"],
    "embedding": ["TokenEmbedding"],
    "encoder": ["Encoder", "EncoderLayer"],
    "decoder": ["Decoder", "DecoderLayer"],
    "config": ["TransformerConfig"],
    "transformer": ["AttentionWeights", "EncoderDecoder", "Transformer"],
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tformer' has no attribute {name!r}")
    value = getattr(import_module(f"tformer.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
