from tformer.nn.attention import attention_weights as attention_weights
from tformer.nn.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from tformer.nn.block import Block as Block
from tformer.nn.encoder import transformer_block as transformer_block
from tformer.nn.cache import Cache as Cache
from tformer.nn.cache import KeyValueCache as KeyValueCache
from tformer.nn.cache import KeyValueCache as KVCache
from tformer.nn.cache import BlockCache as BlockCache
from tformer.nn.cache import ModelCache as ModelCache
from tformer.nn.cache import cache_of as cache_of
from tformer.nn.clamped import ClampedFeedForward as ClampedFeedForward
from tformer.nn.clamped import clamped_swiglu as clamped_swiglu
from tformer.nn.convolution import ShortConvolution as ShortConvolution
from tformer.nn.convolution import short_convolution as short_convolution
from tformer.nn.decoder import Decoder as Decoder
from tformer.nn.decoder import transformer_decoder as transformer_decoder
from tformer.nn.delta_rule import delta_rule_recurrent as delta_rule_recurrent
from tformer.nn.delta_rule import delta_rule as delta_rule
from tformer.nn.delta_rule import corrected_values as corrected_values
from tformer.nn.delta_rule import unit_length as unit_length
from tformer.nn.delta_rule import GatedDeltaRule as GatedDeltaRule
from tformer.nn.embedding import TokenEmbedding as TokenEmbedding
from tformer.nn.encoder import Encoder as Encoder
from tformer.nn.encoder import transformer_encoder as transformer_encoder
from tformer.nn.encoder import last_norm as last_norm
from tformer.nn.experts import Experts as Experts
from tformer.nn.experts import Experts as MoE
from tformer.nn.experts import mix_experts as mix_experts
from tformer.nn.experts import record_routing as record_routing
from tformer.nn.experts import active_parameters as active_parameters
from tformer.nn.feed_forward import FeedForward as FeedForward
from tformer.nn.feed_forward import GatedFeedForward as GatedFeedForward
from tformer.nn.feed_forward import GatedFeedForward as SwiGLU
from tformer.nn.heads import split_heads as split_heads
from tformer.nn.heads import merge_heads as merge_heads
from tformer.nn.heads import MultiHeadAttention as MultiHeadAttention
from tformer.nn.indexer import Indexer as Indexer
from tformer.nn.indexer import IndexedAttention as IndexedAttention
from tformer.nn.indexer import index_scores as index_scores
from tformer.nn.indexer import choose_keys as choose_keys
from tformer.nn.indexer import index_loss as index_loss
from tformer.nn.latent import LatentAttention as LatentAttention
from tformer.nn.latent import LatentAttention as MLA
from tformer.nn.linear_attention import (
    linear_attention_recurrent as linear_attention_recurrent,
)
from tformer.nn.linear_attention import linear_attention as linear_attention
from tformer.nn.linear_attention import chunks as chunks
from tformer.nn.linear_attention import attend_in_chunk as attend_in_chunk
from tformer.nn.linear_attention import decay_matrix as decay_matrix
from tformer.nn.linear_attention import feature_map as feature_map
from tformer.nn.linear_attention import LinearAttention as LinearAttention
from tformer.nn.lora import LoRALinear as LoRALinear
from tformer.nn.lora import add_lora as add_lora
from tformer.nn.lora import merge_lora as merge_lora
from tformer.nn.lora import unmerge_lora as unmerge_lora
from tformer.nn.lora import remove_lora as remove_lora
from tformer.nn.lora import lora_state as lora_state
from tformer.nn.lora import load_lora as load_lora
from tformer.nn.masks import causal_mask as causal_mask
from tformer.nn.masks import length_mask as length_mask
from tformer.nn.masks import combine_masks as combine_masks
from tformer.nn.memory_layout import turn_weights as turn_weights
from tformer.nn.norm import layer_norm as layer_norm
from tformer.nn.norm import LayerNorm as LayerNorm
from tformer.nn.norm import rms_norm as rms_norm
from tformer.nn.norm import RMSNorm as RMSNorm
from tformer.nn.packed import pack_tokens as pack_tokens
from tformer.nn.packed import unpack_tokens as unpack_tokens
from tformer.nn.packed import attend_to_segments as attend_to_segments
from tformer.nn.positions import sinusoidal_positions as sinusoidal_positions
from tformer.nn.positions import (
    SinusoidalPositionalEncoding as SinusoidalPositionalEncoding,
)
from tformer.nn.positions import (
    LearnedPositionalEmbedding as LearnedPositionalEmbedding,
)
from tformer.nn.qk_norm import NormOverHeads as NormOverHeads
from tformer.nn.quantized import quantize as quantize
from tformer.nn.quantized import dequantize as dequantize
from tformer.nn.quantized import pack as pack
from tformer.nn.quantized import unpack as unpack
from tformer.nn.quantized import QuantizedLinear as QuantizedLinear
from tformer.nn.quantized import quantize_linears as quantize_linears
from tformer.nn.quantized import QuantizedCache as QuantizedCache
from tformer.nn.recording import RecordedWeights as RecordedWeights
from tformer.nn.recording import record_weights as record_weights
from tformer.nn.relative import distances as distances
from tformer.nn.relative import alibi_slopes as alibi_slopes
from tformer.nn.relative import ALiBi as ALiBi
from tformer.nn.relative import bucket_starts as bucket_starts
from tformer.nn.relative import relative_buckets as relative_buckets
from tformer.nn.relative import RelativeBias as RelativeBias
from tformer.nn.rotary import rotary_frequencies as rotary_frequencies
from tformer.nn.rotary import rotate as rotate
from tformer.nn.rotary import rotate_pairs as rotate_pairs
from tformer.nn.rotary import RotaryEmbedding as RotaryEmbedding
from tformer.nn.rotary import RotaryEmbedding as RoPE
from tformer.nn.rotary import LongRotaryEmbedding as LongRotaryEmbedding
from tformer.nn.rotary_scaling import longrope_factor as longrope_factor
from tformer.nn.rotary_scaling import pairs_to_halves as pairs_to_halves
from tformer.nn.rotary_scaling import halves_to_pairs as halves_to_pairs
from tformer.nn.rotary_scaling import scale_linear as scale_linear
from tformer.nn.rotary_scaling import scale_ntk as scale_ntk
from tformer.nn.rotary_scaling import scale_llama3 as scale_llama3
from tformer.nn.rotary_scaling import scale_yarn as scale_yarn
from tformer.nn.rotary_scaling import yarn_factor as yarn_factor
from tformer.nn.router import Routing as Routing
from tformer.nn.router import route as route
from tformer.nn.router import hide_groups as hide_groups
from tformer.nn.router import expert_counts as expert_counts
from tformer.nn.router import load_balance_loss as load_balance_loss
from tformer.nn.router import Router as Router
from tformer.nn.state import no_autocast as no_autocast
from tformer.nn.state import wide as wide
from tformer.nn.state import initial_rates as initial_rates
from tformer.nn.state import StateCache as StateCache
from tformer.nn.temperature import QueryTemperature as QueryTemperature
from tformer.nn.tiles import Tiling as Tiling
from tformer.nn.tiles import tiles as tiles
from tformer.nn.tiles import tile_of as tile_of
from tformer.nn.tiles import is_hidden as is_hidden
from tformer.nn.tiles import tile_scores as tile_scores
from tformer.nn.tiles import tiled_forward as tiled_forward
from tformer.nn.tiles import tiled_backward as tiled_backward
from tformer.nn.tiles import tiled_attention as tiled_attention
