"""The NumPy twin: every part of `tformer.nn` once more; torch is never imported here.

Functions and plain classes, for reading and for checking; nothing is trained. Names,
arguments and masks are those of the torch code, and reference/x.py mirrors nn/x.py;
`blocks` is the fast form of attention. A class takes its weights as a mapping from the
names of the torch module's `state_dict` to arrays; `from_torch` makes the twin of a
module that you have.
"""

from typing import TYPE_CHECKING

from tformer.checks import import_when_used

if TYPE_CHECKING:
    from tformer.reference.attention import (
        attention_weights,
        scaled_dot_product_attention,
        softmax,
    )
    from tformer.reference.block import Block
    from tformer.reference.causal_lm import CausalLM
    from tformer.reference.decoder import Decoder, DecoderLayer
    from tformer.reference.delta_rule import (
        GatedDeltaRule,
        delta_rule,
        delta_rule_recurrent,
        unit_length,
    )
    from tformer.reference.embedding import TokenEmbedding
    from tformer.reference.encoder import Encoder, EncoderLayer
    from tformer.reference.experts import Experts, load_balance_loss, route
    from tformer.reference.feed_forward import (
        FeedForward,
        gelu,
        gelu_tanh,
        relu,
        relu2,
    )
    from tformer.reference.gated import GatedFeedForward, sigmoid, silu
    from tformer.reference.heads import MultiHeadAttention, merge_heads, split_heads
    from tformer.reference.interop import from_torch
    from tformer.reference.latent import LatentAttention
    from tformer.reference.linear_attention import (
        LinearAttention,
        feature_map,
        linear_attention,
        linear_attention_recurrent,
    )
    from tformer.reference.lora import LoRALinear
    from tformer.reference.masks import (
        causal_mask,
        combine_masks,
        length_mask,
        sliding_window_mask,
    )
    from tformer.reference.norm import LayerNorm, layer_norm
    from tformer.reference.positions import (
        LearnedPositionalEmbedding,
        SinusoidalPositionalEncoding,
        sinusoidal_positional_encoding,
    )
    from tformer.reference.quantized import dequantize, quantize
    from tformer.reference.recording import record_weights
    from tformer.reference.relative import (
        ALiBi,
        RelativeBias,
        alibi_slopes,
        bucket_starts,
        relative_buckets,
    )
    from tformer.reference.residual import Residual
    from tformer.reference.rms_norm import RMSNorm, rms_norm
    from tformer.reference.rotary import (
        RotaryEmbedding,
        halves_to_pairs,
        pairs_to_halves,
        rotary_frequencies,
        rotate,
    )
    from tformer.reference.rotary_scaling import (
        scale_linear,
        scale_llama3,
        scale_ntk,
        scale_yarn,
        yarn_factor,
    )
    from tformer.reference.self_attention import SelfAttention
    from tformer.reference.speculative import acceptance, after_rejection
    from tformer.reference.tiles import tiled_attention, tiled_backward, tiled_forward
    from tformer.reference.transformer import EncoderDecoder, Transformer

__all__ = [
    "ALiBi",
    "Block",
    "CausalLM",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "Experts",
    "FeedForward",
    "GatedDeltaRule",
    "GatedFeedForward",
    "LatentAttention",
    "LayerNorm",
    "LearnedPositionalEmbedding",
    "LinearAttention",
    "LoRALinear",
    "MultiHeadAttention",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "RotaryEmbedding",
    "SelfAttention",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "acceptance",
    "after_rejection",
    "alibi_slopes",
    "attention_weights",
    "bucket_starts",
    "causal_mask",
    "combine_masks",
    "delta_rule",
    "delta_rule_recurrent",
    "dequantize",
    "feature_map",
    "from_torch",
    "gelu",
    "gelu_tanh",
    "halves_to_pairs",
    "layer_norm",
    "length_mask",
    "linear_attention",
    "linear_attention_recurrent",
    "load_balance_loss",
    "merge_heads",
    "pairs_to_halves",
    "quantize",
    "record_weights",
    "relative_buckets",
    "relu",
    "relu2",
    "rms_norm",
    "rotary_frequencies",
    "rotate",
    "route",
    "scale_linear",
    "scale_llama3",
    "scale_ntk",
    "scale_yarn",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "sinusoidal_positional_encoding",
    "sliding_window_mask",
    "softmax",
    "split_heads",
    "tiled_attention",
    "tiled_backward",
    "tiled_forward",
    "unit_length",
    "yarn_factor",
]

_NAMES_OF = {
    "attention": ["attention_weights", "scaled_dot_product_attention", "softmax"],
    "block": ["Block"],
    "causal_lm": ["CausalLM"],
    "decoder": ["Decoder", "DecoderLayer"],
    "delta_rule": [
        "GatedDeltaRule",
        "delta_rule",
        "delta_rule_recurrent",
        "unit_length",
    ],
    "embedding": ["TokenEmbedding"],
    "encoder": ["Encoder", "EncoderLayer"],
    "experts": ["Experts", "load_balance_loss", "route"],
    "feed_forward": ["FeedForward", "gelu", "gelu_tanh", "relu", "relu2"],
    "gated": ["GatedFeedForward", "sigmoid", "silu"],
    "heads": ["MultiHeadAttention", "merge_heads", "split_heads"],
    "interop": ["from_torch"],
    "latent": ["LatentAttention"],
    "linear_attention": [
        "LinearAttention",
        "feature_map",
        "linear_attention",
        "linear_attention_recurrent",
    ],
    "lora": ["LoRALinear"],
    "masks": ["causal_mask", "combine_masks", "length_mask", "sliding_window_mask"],
    "norm": ["LayerNorm", "layer_norm"],
    "positions": [
        "LearnedPositionalEmbedding",
        "SinusoidalPositionalEncoding",
        "sinusoidal_positional_encoding",
    ],
    "quantized": ["dequantize", "quantize"],
    "recording": ["record_weights"],
    "relative": [
        "ALiBi",
        "RelativeBias",
        "alibi_slopes",
        "bucket_starts",
        "relative_buckets",
    ],
    "residual": ["Residual"],
    "rms_norm": ["RMSNorm", "rms_norm"],
    "rotary": [
        "RotaryEmbedding",
        "halves_to_pairs",
        "pairs_to_halves",
        "rotary_frequencies",
        "rotate",
    ],
    "rotary_scaling": [
        "scale_linear",
        "scale_llama3",
        "scale_ntk",
        "scale_yarn",
        "yarn_factor",
    ],
    "self_attention": ["SelfAttention"],
    "speculative": ["acceptance", "after_rejection"],
    "tiles": ["tiled_attention", "tiled_backward", "tiled_forward"],
    "transformer": ["EncoderDecoder", "Transformer"],
}
import_when_used(__name__, _NAMES_OF, _NAMES_OF)
