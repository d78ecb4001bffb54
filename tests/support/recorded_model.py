"""A model whose attention weights are recorded, and the names of its attentions."""

import torch

from tformer import (
    Decoder,
    Encoder,
    EncoderDecoder,
    MultiHeadAttention,
    scaled_dot_product_attention,
)

B, T, S, H, G, D, F = 2, 5, 7, 6, 3, 66, 13
NAMES = [
    "encoder.layers.0.self_attn",
    "decoder.layers.0.self_attn",
    "decoder.layers.0.cross_attn",
    "decoder.layers.1.self_attn",
    "decoder.layers.1.cross_attn",
]


def make_model():
    encoder, decoder = Encoder(D, H, F, 1), Decoder(D, H, F, 2, num_kv_heads=G)
    return EncoderDecoder(encoder, decoder)


def draw_inputs():
    return torch.randn(B, S, D), torch.randn(B, T, D)


def untouched(model):
    """Say whether every attention is as it was made."""
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert attentions
    return all(
        "attend" not in vars(each) and each.attend is scaled_dot_product_attention
        for each in attentions
    )
