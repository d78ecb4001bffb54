"""The Transformer, executable: attention, heads, positions, encoder and decoder.

Names are imported when they are first used, so that `import tformer.reference`, the
NumPy twin, does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tformer.attention import scaled_dot_product_attention
    from tformer.beam import beam_search
    from tformer.bert import BERT, BERTConfig, mask_tokens
    from tformer.cache import KeyValueCache
    from tformer.checkpoint import load_checkpoint, save_checkpoint
    from tformer.config import TransformerConfig
    from tformer.decoder import Decoder, DecoderLayer
    from tformer.decoding import greedy
    from tformer.embedding import TokenEmbedding
    from tformer.encoder import Encoder, EncoderLayer
    from tformer.feed_forward import FeedForward
    from tformer.gpt import GPT, GPTConfig
    from tformer.heads import MultiHeadAttention
    from tformer.loss import label_smoothed_cross_entropy
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
    from tformer.pretrained import load_pretrained
    from tformer.residual import Residual
    from tformer.sampling import sample
    from tformer.schedule import inverse_sqrt_schedule
    from tformer.training import train
    from tformer.transformer import (
        AttentionWeights,
        EncoderDecoder,
        Transformer,
    )

__version__ = "0.1.0"

__all__ = [
    "BERT",
    "GPT",
    "AttentionWeights",
    "BERTConfig",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "FeedForward",
    "GPTConfig",
    "KeyValueCache",
    "LayerNorm",
    "LearnedPositionalEmbedding",
    "MultiHeadAttention",
    "Residual",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "beam_search",
    "causal_mask",
    "combine_masks",
    "greedy",
    "inverse_sqrt_schedule",
    "label_smoothed_cross_entropy",
    "length_mask",
    "load_checkpoint",
    "load_pretrained",
    "mask_tokens",
    "sample",
    "save_checkpoint",
    "scaled_dot_product_attention",
    "sliding_window_mask",
    "train",
]

_NAMES_OF = {
    "attention": ["scaled_dot_product_attention"],
    "masks": ["causal_mask", "combine_masks", "length_mask", "sliding_window_mask"],
    "heads": ["MultiHeadAttention"],
    "cache": ["KeyValueCache"],
    "positions": ["LearnedPositionalEmbedding", "SinusoidalPositionalEncoding"],
    "feed_forward": ["FeedForward"],
    "norm": ["LayerNorm"],
    "residual": ["Residual"],
    "embedding": ["TokenEmbedding"],
    "encoder": ["Encoder", "EncoderLayer"],
    "decoder": ["Decoder", "DecoderLayer"],
    "config": ["TransformerConfig"],
    "transformer": ["AttentionWeights", "EncoderDecoder", "Transformer"],
    "gpt": ["GPT", "GPTConfig"],
    "bert": ["BERT", "BERTConfig", "mask_tokens"],
    "loss": ["label_smoothed_cross_entropy"],
    "schedule": ["inverse_sqrt_schedule"],
    "training": ["train"],
    "decoding": ["greedy"],
    "beam": ["beam_search"],
    "sampling": ["sample"],
    "checkpoint": ["load_checkpoint", "save_checkpoint"],
    "pretrained": ["load_pretrained"],
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}
# Modules of which `import tformer` is enough: tformer.interop.from_torch(…).
_MODULES = {*_NAMES_OF, "interop", "linear", "reference", "tasks"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"tformer.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tformer' has no attribute {name!r}")
    value = getattr(import_module(f"tformer.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
