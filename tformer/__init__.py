"""The Transformer, executable: attention, heads, positions, encoder and decoder.

Names are imported when they are first used, so that `import tformer.reference`, the
NumPy twin, does not wait for torch.
"""

from typing import TYPE_CHECKING

from tformer.checks import import_when_used

if TYPE_CHECKING:
    from tformer import data as data
    from tformer import fast as fast
    from tformer import generate as generate
    from tformer import interop as interop
    from tformer import models as models
    from tformer import nn as nn
    from tformer import pretrained as pretrained
    from tformer import reference as reference
    from tformer import tasks as tasks
    from tformer import training as training
    from tformer.data.masking import mask_tokens
    from tformer.generate.beam import beam_search
    from tformer.generate.given import Prefix
    from tformer.generate.sampling import greedy, sample
    from tformer.generate.speculative import speculative_sample
    from tformer.models.attention_parts import LatentParts, RotaryParts
    from tformer.models.bert import BERT, BERTConfig
    from tformer.models.causal_config import CausalLMConfig, Parts
    from tformer.models.causal_lm import CausalLM
    from tformer.models.config import TransformerConfig
    from tformer.models.encoder_decoder import EncoderDecoder
    from tformer.models.expert_parts import ExpertParts
    from tformer.models.gpt import GPT, GPTConfig
    from tformer.models.multi_token import MultiTokenHeads, multi_token_losses
    from tformer.models.transformer import Transformer
    from tformer.nn.attention import attention_weights, scaled_dot_product_attention
    from tformer.nn.block import Block
    from tformer.nn.cache import KeyValueCache
    from tformer.nn.decoder import Decoder, DecoderLayer
    from tformer.nn.delta_rule import (
        GatedDeltaRule,
        delta_rule,
        delta_rule_recurrent,
        unit_length,
    )
    from tformer.nn.embedding import TokenEmbedding
    from tformer.nn.encoder import Encoder, EncoderLayer
    from tformer.nn.experts import (
        Experts,
        active_parameters,
        record_routing,
    )
    from tformer.nn.feed_forward import FeedForward
    from tformer.nn.gated import GatedFeedForward
    from tformer.nn.heads import MultiHeadAttention
    from tformer.nn.latent import LatentAttention
    from tformer.nn.linear_attention import (
        LinearAttention,
        linear_attention,
        linear_attention_recurrent,
    )
    from tformer.nn.lora import (
        LoRALinear,
        add_lora,
        load_lora,
        lora_state,
        merge_lora,
        remove_lora,
        unmerge_lora,
    )
    from tformer.nn.masks import (
        causal_mask,
        combine_masks,
        length_mask,
        sliding_window_mask,
    )
    from tformer.nn.norm import LayerNorm
    from tformer.nn.positions import (
        LearnedPositionalEmbedding,
        SinusoidalPositionalEncoding,
    )
    from tformer.nn.quantized import (
        QuantizedLinear,
        dequantize,
        quantize,
        quantize_linears,
    )
    from tformer.nn.quantized_cache import QuantizedCache
    from tformer.nn.recording import record_weights
    from tformer.nn.relative import (
        ALiBi,
        RelativeBias,
        alibi_slopes,
        bucket_starts,
        relative_buckets,
    )
    from tformer.nn.residual import Residual
    from tformer.nn.rms_norm import RMSNorm
    from tformer.nn.rolling import RollingCache
    from tformer.nn.rotary import (
        RotaryEmbedding,
        halves_to_pairs,
        pairs_to_halves,
        rotary_frequencies,
    )
    from tformer.nn.rotary_scaling import (
        scale_linear,
        scale_llama3,
        scale_ntk,
        scale_yarn,
        yarn_factor,
    )
    from tformer.nn.router import load_balance_loss, route
    from tformer.nn.self_attention import SelfAttention
    from tformer.nn.tiles import tiled_attention
    from tformer.pretrained import load_pretrained
    from tformer.training.checkpoint import load_checkpoint, save_checkpoint
    from tformer.training.loop import train
    from tformer.training.loss import label_smoothed_cross_entropy
    from tformer.training.schedule import inverse_sqrt_schedule

__version__ = "0.1.0"

__all__ = [
    "BERT",
    "GPT",
    "ALiBi",
    "BERTConfig",
    "Block",
    "CausalLM",
    "CausalLMConfig",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "ExpertParts",
    "Experts",
    "FeedForward",
    "GPTConfig",
    "GatedDeltaRule",
    "GatedFeedForward",
    "KeyValueCache",
    "LatentAttention",
    "LatentParts",
    "LayerNorm",
    "LearnedPositionalEmbedding",
    "LinearAttention",
    "LoRALinear",
    "MultiHeadAttention",
    "MultiTokenHeads",
    "Parts",
    "Prefix",
    "QuantizedCache",
    "QuantizedLinear",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "RollingCache",
    "RotaryEmbedding",
    "RotaryParts",
    "SelfAttention",
    "SinusoidalPositionalEncoding",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "active_parameters",
    "add_lora",
    "alibi_slopes",
    "attention_weights",
    "beam_search",
    "bucket_starts",
    "causal_mask",
    "combine_masks",
    "delta_rule",
    "delta_rule_recurrent",
    "dequantize",
    "greedy",
    "halves_to_pairs",
    "inverse_sqrt_schedule",
    "label_smoothed_cross_entropy",
    "length_mask",
    "linear_attention",
    "linear_attention_recurrent",
    "load_balance_loss",
    "load_checkpoint",
    "load_lora",
    "load_pretrained",
    "lora_state",
    "mask_tokens",
    "merge_lora",
    "multi_token_losses",
    "pairs_to_halves",
    "quantize",
    "quantize_linears",
    "record_routing",
    "record_weights",
    "relative_buckets",
    "remove_lora",
    "rotary_frequencies",
    "route",
    "sample",
    "save_checkpoint",
    "scale_linear",
    "scale_llama3",
    "scale_ntk",
    "scale_yarn",
    "scaled_dot_product_attention",
    "sliding_window_mask",
    "speculative_sample",
    "tiled_attention",
    "train",
    "unit_length",
    "unmerge_lora",
    "yarn_factor",
]

_NAMES_OF = {
    "nn.attention": ["attention_weights", "scaled_dot_product_attention"],
    "nn.masks": ["causal_mask", "combine_masks", "length_mask", "sliding_window_mask"],
    "nn.heads": ["MultiHeadAttention"],
    "nn.recording": ["record_weights"],
    "nn.cache": ["KeyValueCache"],
    "nn.quantized": ["QuantizedLinear", "dequantize", "quantize", "quantize_linears"],
    "nn.quantized_cache": ["QuantizedCache"],
    "nn.positions": ["LearnedPositionalEmbedding", "SinusoidalPositionalEncoding"],
    "nn.rotary": [
        "RotaryEmbedding",
        "halves_to_pairs",
        "pairs_to_halves",
        "rotary_frequencies",
    ],
    "nn.rotary_scaling": [
        "scale_linear",
        "scale_llama3",
        "scale_ntk",
        "scale_yarn",
        "yarn_factor",
    ],
    "nn.relative": [
        "ALiBi",
        "RelativeBias",
        "alibi_slopes",
        "bucket_starts",
        "relative_buckets",
    ],
    "nn.feed_forward": ["FeedForward"],
    "nn.norm": ["LayerNorm"],
    "nn.rms_norm": ["RMSNorm"],
    "nn.gated": ["GatedFeedForward"],
    "nn.self_attention": ["SelfAttention"],
    "nn.block": ["Block"],
    "nn.experts": [
        "Experts",
        "active_parameters",
        "record_routing",
    ],
    "nn.router": ["load_balance_loss", "route"],
    "nn.residual": ["Residual"],
    "nn.linear_attention": [
        "LinearAttention",
        "linear_attention",
        "linear_attention_recurrent",
    ],
    "nn.delta_rule": [
        "GatedDeltaRule",
        "delta_rule",
        "delta_rule_recurrent",
        "unit_length",
    ],
    "nn.tiles": ["tiled_attention"],
    "nn.latent": ["LatentAttention"],
    "nn.lora": [
        "LoRALinear",
        "add_lora",
        "load_lora",
        "lora_state",
        "merge_lora",
        "remove_lora",
        "unmerge_lora",
    ],
    "nn.rolling": ["RollingCache"],
    "nn.embedding": ["TokenEmbedding"],
    "nn.encoder": ["Encoder", "EncoderLayer"],
    "nn.decoder": ["Decoder", "DecoderLayer"],
    "models.config": ["TransformerConfig"],
    "models.transformer": ["Transformer"],
    "models.encoder_decoder": ["EncoderDecoder"],
    "models.gpt": ["GPT", "GPTConfig"],
    "models.multi_token": ["MultiTokenHeads", "multi_token_losses"],
    "models.bert": ["BERT", "BERTConfig"],
    "models.causal_config": ["CausalLMConfig", "Parts"],
    "models.causal_lm": ["CausalLM"],
    "models.attention_parts": ["LatentParts", "RotaryParts"],
    "models.expert_parts": ["ExpertParts"],
    "training.loss": ["label_smoothed_cross_entropy"],
    "training.schedule": ["inverse_sqrt_schedule"],
    "training.loop": ["train"],
    "training.checkpoint": ["load_checkpoint", "save_checkpoint"],
    "data.masking": ["mask_tokens"],
    "generate.beam": ["beam_search"],
    "generate.sampling": ["greedy", "sample"],
    "generate.given": ["Prefix"],
    "generate.speculative": ["speculative_sample"],
    "pretrained": ["load_pretrained"],
}
# Folders of which `import tformer` is enough: tformer.interop.from_torch(…).
_FOLDERS = {
    *("nn", "fast", "models", "generate", "training", "data", "tasks"),
    *("interop", "pretrained", "reference"),
}
import_when_used(__name__, _NAMES_OF, _FOLDERS)
