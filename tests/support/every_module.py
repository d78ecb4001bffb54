"""Every module of the package, small, and inputs of any batch and length for it."""

from functools import partial

import torch
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.models.attention_parts import LatentParts, RotaryParts
from tformer.models.causal_config import Parts
from tformer.models.expert_parts import ExpertParts
from tformer.nn.residual import Residual
from torch import nn

from tformer import (
    BERT,
    GPT,
    ALiBi,
    BERTConfig,
    Block,
    CausalLM,
    CausalLMConfig,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    Experts,
    FeedForward,
    GatedDeltaRule,
    GatedFeedForward,
    GPTConfig,
    LatentAttention,
    LayerNorm,
    LearnedPositionalEmbedding,
    LinearAttention,
    LoRALinear,
    MultiHeadAttention,
    MultiTokenHeads,
    RelativeBias,
    RMSNorm,
    RotaryEmbedding,
    SelfAttention,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    length_mask,
    rotary_frequencies,
)
from tformer.models.multi_token import MultiTokenHead
from tformer.nn.quantized import QuantizedLinear
from tformer.nn.router import Router

D, H, F, V = 16, 4, 24, 11


def rotary(width=D // H):
    return RotaryEmbedding(rotary_frequencies(width))


def vectors(B, T):
    return (torch.randn(B, T, D),)


def two_vectors(B, T):
    return tuple(torch.randn(2, B, T, D))


def vectors_and_mask(B, T):
    lengths = torch.arange(B) % T + 1
    return torch.randn(B, T, D), length_mask(lengths, T)


def with_memory(B, T):
    return torch.randn(B, T, D), torch.randn(B, T + 2, D)


def queries_and_memory(B, T):
    return with_memory(B, T)


def heads(B, T):
    return (torch.randn(B, H, T, D // H),)


def ids(B, T):
    return (torch.randint(1, V, (B, T)),)


def two_ids(B, T):
    return torch.randint(1, V, (B, T)), torch.randint(1, V, (B, T + 1))


def lengths(B, T):
    return (T, T)


SMALL = {"vocab_size": V, "d_model": D, "num_heads": H, "num_layers": 1, "max_len": 20}
MODULES = {
    Linear: (lambda: Linear(D, F), vectors),
    Dropout: (lambda: Dropout(0.1), vectors),
    QuantizedLinear: (lambda: QuantizedLinear(nn.Linear(D, F)), vectors),
    LayerNorm: (lambda: LayerNorm(D), vectors),
    RMSNorm: (lambda: RMSNorm(D), vectors),
    FeedForward: (lambda: FeedForward(D, F, dropout=0.1), vectors),
    GatedFeedForward: (lambda: GatedFeedForward(D, F, dropout=0.1), vectors),
    Router: (lambda: Router(D, 4), vectors),
    Experts: (lambda: Experts(D, 4, lambda: FeedForward(D, F)), vectors),
    TokenEmbedding: (lambda: TokenEmbedding(V, D), ids),
    SinusoidalPositionalEncoding: (lambda: SinusoidalPositionalEncoding(D), vectors),
    LearnedPositionalEmbedding: (lambda: LearnedPositionalEmbedding(20, D), vectors),
    RotaryEmbedding: (rotary, heads),
    ALiBi: (lambda: ALiBi(H), lengths),
    RelativeBias: (lambda: RelativeBias(H), lengths),
    MultiHeadAttention: (
        lambda: MultiHeadAttention(D, H, num_kv_heads=2, dropout=0.1),
        queries_and_memory,
    ),
    SelfAttention: (
        lambda: SelfAttention(
            D, H, rotary=rotary(), qk_norm=RMSNorm, window=3, sinks=True, dropout=0.1
        ),
        vectors,
    ),
    LatentAttention: (
        lambda: LatentAttention(D, H, kv_rank=6, head_dim=4, rotary=rotary()),
        vectors,
    ),
    LinearAttention: (lambda: LinearAttention(D, H), vectors),
    GatedDeltaRule: (lambda: GatedDeltaRule(D, H), vectors),
    LoRALinear: (lambda: LoRALinear(nn.Linear(D, F), 2), vectors),
    MultiTokenHead: (lambda: MultiTokenHead(D, F), two_vectors),
    MultiTokenHeads: (lambda: BesideATrunk(), ids),
    Residual: (lambda: AroundNothing(), vectors),
    EncoderLayer: (lambda: EncoderLayer(D, H, F, dropout=0.1), vectors_and_mask),
    Encoder: (lambda: Encoder(D, H, F, 2, dropout=0.1), vectors_and_mask),
    DecoderLayer: (lambda: DecoderLayer(D, H, F, dropout=0.1), with_memory),
    Decoder: (lambda: Decoder(D, H, F, 2, norm_first=True), with_memory),
    EncoderDecoder: (
        lambda: EncoderDecoder(Encoder(D, H, F, 1), Decoder(D, H, F, 1)),
        with_memory,
    ),
    Block: (
        lambda: Block(SelfAttention(D, H), GatedFeedForward(D, F), partial(RMSNorm, D)),
        vectors,
    ),
    GPT: (lambda: GPT(GPTConfig.tiny(**SMALL)), ids),
    BERT: (lambda: BERT(BERTConfig.tiny(**SMALL)), ids),
    CausalLM: (lambda: CausalLM(CausalLMConfig.tiny(**SMALL)), ids),
    Transformer: (
        lambda: Transformer(
            TransformerConfig.tiny(vocab_size=V, d_model=D, num_heads=H, d_ff=F)
        ),
        two_ids,
    ),
}


class AroundNothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.residual = Residual(D, dropout=0.1, norm_first=True)

    def forward(self, x):
        return self.residual(x, torch.tanh)


class BesideATrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.heads = GPT(GPTConfig.tiny(**SMALL)), MultiTokenHeads(D, 2)

    def forward(self, ids):
        return torch.cat(self.heads(self.trunk, ids), dim=1)


def language_model(**parts):
    """Return what makes a CausalLM of two layers with these parts."""
    sizes = {**SMALL, "num_layers": 2, "max_len": 10}
    sizes["num_kv_heads"] = None if "latent" in parts else 2
    return lambda: CausalLM(CausalLMConfig.tiny(**sizes, parts=Parts(**parts)))


# Each part that a CausalLM can be built with is in one of these.
LANGUAGE_MODELS = {
    "sinusoids": language_model(positions="sinusoidal", norm="layer"),
    "ALiBi": language_model(positions="alibi", softcap=2.0),
    "T5": language_model(positions="t5", feed_forward="relu2", placement="post"),
    "YaRN": language_model(
        rotary=RotaryParts(scaling="yarn", scale=4.0, trained_len=8, layout="pairs")
    ),
    "window": language_model(
        window=7, global_every=2, qk_norm=True, norm="rms_plus_one", logit_cap=3.0
    ),
    "sinks": language_model(window=8, sinks=True),
    "latent": language_model(latent=LatentParts(kv_rank=6, q_rank=5)),
    "experts": language_model(experts=ExpertParts(num_experts=4, num_shared=1)),
}


def tensors(output):
    """Flatten what a module returns."""
    return output if isinstance(output, torch.Tensor) else list(output)
