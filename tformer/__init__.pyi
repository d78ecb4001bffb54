from tformer import check as check
from tformer import data as data
from tformer import generate as generate
from tformer import interop as interop
from tformer import models as models
from tformer import nn as nn
from tformer import pretrained as pretrained
from tformer import reference as reference
from tformer import tasks as tasks
from tformer import training as training
from tformer.generate.beam import beam_search as beam_search
from tformer.generate.sampling import greedy as greedy
from tformer.generate.sampling import sample as sample
from tformer.models.bert import BERT as BERT
from tformer.models.bert import BERTConfig as BERTConfig
from tformer.models.causal_lm import CausalLM as CausalLM
from tformer.models.config import TransformerConfig as TransformerConfig
from tformer.models.transformer import Transformer as Transformer
from tformer.nn.attention import attention_weights as attention_weights
from tformer.nn.attention import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from tformer.nn.block import Block as Block
from tformer.nn.encoder import transformer_block as transformer_block
from tformer.nn.cache import KeyValueCache as KeyValueCache
from tformer.nn.decoder import Decoder as Decoder
from tformer.nn.decoder import transformer_decoder as transformer_decoder
from tformer.nn.encoder import Encoder as Encoder
from tformer.nn.encoder import transformer_encoder as transformer_encoder
from tformer.nn.feed_forward import FeedForward as FeedForward
from tformer.nn.feed_forward import GatedFeedForward as GatedFeedForward
from tformer.nn.heads import MultiHeadAttention as MultiHeadAttention
from tformer.nn.masks import causal_mask as causal_mask
from tformer.nn.masks import length_mask as length_mask
from tformer.nn.norm import LayerNorm as LayerNorm
from tformer.nn.norm import RMSNorm as RMSNorm
from tformer.nn.positions import (
    LearnedPositionalEmbedding as LearnedPositionalEmbedding,
)
from tformer.nn.positions import (
    SinusoidalPositionalEncoding as SinusoidalPositionalEncoding,
)
from tformer.nn.recording import record_weights as record_weights
from tformer.nn.rotary import RotaryEmbedding as RotaryEmbedding
from tformer.pretrained import load_pretrained as load_pretrained
from tformer.training.checkpoint import load_checkpoint as load_checkpoint
from tformer.training.checkpoint import save_checkpoint as save_checkpoint
from tformer.training.loop import train as train
from tformer.training.loss import (
    label_smoothed_cross_entropy as label_smoothed_cross_entropy,
)

__version__: str
