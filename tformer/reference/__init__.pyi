from tformer.reference.attention import attention_in_blocks as attention_in_blocks
from tformer.reference.attention import attention_weights as attention_weights
from tformer.reference.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from tformer.reference.attention import softmax as softmax
from tformer.reference.block import Block as Block
from tformer.reference.block import Decoder as Decoder
from tformer.reference.block import Encoder as Encoder
from tformer.reference.causal_lm import CausalLM as CausalLM
from tformer.reference.clamped import ClampedFeedForward as ClampedFeedForward
from tformer.reference.clamped import clamped_swiglu as clamped_swiglu
from tformer.reference.convolution import ShortConvolution as ShortConvolution
from tformer.reference.convolution import short_convolution as short_convolution
from tformer.reference.delta_rule import GatedDeltaRule as GatedDeltaRule
from tformer.reference.delta_rule import delta_rule_recurrent as delta_rule_recurrent
from tformer.reference.delta_rule import unit_length as unit_length
from tformer.reference.embedding import TokenEmbedding as TokenEmbedding
from tformer.reference.experts import Experts as Experts
from tformer.reference.experts import Router as Router
from tformer.reference.experts import hide_groups as hide_groups
from tformer.reference.experts import load_balance_loss as load_balance_loss
from tformer.reference.experts import route as route
from tformer.reference.feed_forward import FeedForward as FeedForward
from tformer.reference.feed_forward import GatedFeedForward as GatedFeedForward
from tformer.reference.feed_forward import gelu as gelu
from tformer.reference.feed_forward import gelu_tanh as gelu_tanh
from tformer.reference.feed_forward import relu as relu
from tformer.reference.feed_forward import relu2 as relu2
from tformer.reference.feed_forward import sigmoid as sigmoid
from tformer.reference.feed_forward import silu as silu
from tformer.reference.heads import MultiHeadAttention as MultiHeadAttention
from tformer.reference.heads import merge_heads as merge_heads
from tformer.reference.heads import split_heads as split_heads
from tformer.reference.interop import from_torch as from_torch
from tformer.reference.hyper_connections import HyperConnection as HyperConnection
from tformer.reference.hyper_connections import sinkhorn as sinkhorn
from tformer.reference.indexer import Indexer as Indexer
from tformer.reference.indexer import IndexedAttention as IndexedAttention
from tformer.reference.indexer import index_scores as index_scores
from tformer.reference.indexer import choose_keys as choose_keys
from tformer.reference.kda import KimiDeltaAttention as KimiDeltaAttention
from tformer.reference.latent import LatentAttention as LatentAttention
from tformer.reference.linear import Linear as Linear
from tformer.reference.linear_attention import LinearAttention as LinearAttention
from tformer.reference.linear_attention import feature_map as feature_map
from tformer.reference.linear_attention import (
    linear_attention_recurrent as linear_attention_recurrent,
)
from tformer.reference.lora import LoRALinear as LoRALinear
from tformer.reference.mamba2 import Mamba2 as Mamba2
from tformer.reference.mamba2 import state_space_recurrent as state_space_recurrent
from tformer.reference.masks import causal_mask as causal_mask
from tformer.reference.masks import combine_masks as combine_masks
from tformer.reference.masks import length_mask as length_mask
from tformer.reference.mxfp4 import quantize_mxfp4 as quantize_mxfp4
from tformer.reference.mxfp4 import dequantize_mxfp4 as dequantize_mxfp4
from tformer.reference.norm import LayerNorm as LayerNorm
from tformer.reference.norm import RMSNorm as RMSNorm
from tformer.reference.norm import layer_norm as layer_norm
from tformer.reference.norm import rms_norm as rms_norm
from tformer.reference.per_layer import LayerInput as LayerInput
from tformer.reference.per_layer import PerLayerEmbedding as PerLayerEmbedding
from tformer.reference.per_layer import ScaledBlock as ScaledBlock
from tformer.reference.positions import (
    LearnedPositionalEmbedding as LearnedPositionalEmbedding,
)
from tformer.reference.positions import (
    SinusoidalPositionalEncoding as SinusoidalPositionalEncoding,
)
from tformer.reference.positions import (
    sinusoidal_positional_encoding as sinusoidal_positional_encoding,
)
from tformer.reference.post_training import token_log_probs as token_log_probs
from tformer.reference.post_training import sequence_log_probs as sequence_log_probs
from tformer.reference.post_training import sft_loss as sft_loss
from tformer.reference.post_training import dpo_loss as dpo_loss
from tformer.reference.post_training import grpo_advantages as grpo_advantages
from tformer.reference.post_training import kl_k3 as kl_k3
from tformer.reference.post_training import grpo_loss as grpo_loss
from tformer.reference.qk_norm import NormOverHeads as NormOverHeads
from tformer.reference.qk_norm import LateNormAttention as LateNormAttention
from tformer.reference.quantized import dequantize as dequantize
from tformer.reference.quantized import quantize as quantize
from tformer.reference.recording import record_weights as record_weights
from tformer.reference.relative import ALiBi as ALiBi
from tformer.reference.relative import RelativeBias as RelativeBias
from tformer.reference.relative import alibi_slopes as alibi_slopes
from tformer.reference.relative import bucket_starts as bucket_starts
from tformer.reference.relative import relative_buckets as relative_buckets
from tformer.reference.rotary import RotaryEmbedding as RotaryEmbedding
from tformer.reference.rotary import LongRotaryEmbedding as LongRotaryEmbedding
from tformer.reference.temperature import QueryTemperature as QueryTemperature
from tformer.nn.rotary_scaling import longrope_factor as longrope_factor
from tformer.nn.rotary_scaling import halves_to_pairs as halves_to_pairs
from tformer.nn.rotary_scaling import pairs_to_halves as pairs_to_halves
from tformer.reference.rotary import rotary_frequencies as rotary_frequencies
from tformer.reference.rotary import rotate as rotate
from tformer.nn.rotary_scaling import keep_fastest as keep_fastest
from tformer.nn.rotary_scaling import scale_linear as scale_linear
from tformer.nn.rotary_scaling import scale_llama3 as scale_llama3
from tformer.nn.rotary_scaling import scale_ntk as scale_ntk
from tformer.nn.rotary_scaling import scale_yarn as scale_yarn
from tformer.nn.rotary_scaling import yarn_factor as yarn_factor
from tformer.reference.shared_layers import SharedKeysAttention as SharedKeysAttention
from tformer.reference.shared_layers import SharedLayersLM as SharedLayersLM
from tformer.reference.speculative import acceptance as acceptance
from tformer.reference.speculative import after_rejection as after_rejection
from tformer.reference.seq2seq_lm import Seq2SeqLM as Seq2SeqLM
