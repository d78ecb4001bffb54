"""A model whose attention weights are recorded, and the names of its attentions."""

import torch

from tformer import MultiHeadAttention, transformer_decoder, transformer_encoder
from tformer.models.encoder_decoder import EncoderDecoder

B, T, S, H, G, D, F = 2, 5, 7, 6, 3, 66, 13
NAMES = [
    "encoder.blocks.0.attention",
    "decoder.blocks.0.attention",
    "decoder.blocks.0.cross_attention",
    "decoder.blocks.1.attention",
    "decoder.blocks.1.cross_attention",
]


def make_model():
    encoder = transformer_encoder(D, H, F, 1)
    return EncoderDecoder(encoder, transformer_decoder(D, H, F, 2, num_kv_heads=G))


def draw_inputs():
    return torch.randn(B, S, D), torch.randn(B, T, D)


def untouched(model):
    """Say whether every attention is as it was made."""
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert attentions
    return all(each.recorders == () for each in attentions)
