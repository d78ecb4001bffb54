"""Every module of the package, small, and inputs of any batch and length for it."""

import torch
from torch import nn

from module_inputs import (
    D,
    F,
    H,
    V,
    heads,
    ids,
    ids_and_vectors,
    images,
    lengths,
    streams,
    two_ids,
    two_vectors,
    vectors,
    vectors_and_mask,
    vectors_and_told,
    with_memory,
)
from tformer.models import BERT, BERTConfig, Transformer, TransformerConfig
from tformer.models.causal_lm import CausalLM
from tformer.models.encoder_decoder import EncoderDecoder
from tformer.models.families import bart, custom, gemma4, t5
from tformer.models.multi_token import MultiTokenHead, MultiTokenHeads
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.models.shared_layers import SharedLayersLM
from tformer.models.vit import ViT
from tformer.nn import (
    ALiBi,
    Block,
    ClampedFeedForward,
    Decoder,
    Encoder,
    Experts,
    FeedForward,
    GatedDeltaRule,
    GatedFeedForward,
    HyperConnection,
    IndexedAttention,
    Indexer,
    KimiDeltaAttention,
    LateNormAttention,
    LatentAttention,
    LayerInput,
    LayerNorm,
    LearnedPositionalEmbedding,
    LinearAttention,
    LongRotaryEmbedding,
    LoRALinear,
    Mamba2,
    MultiHeadAttention,
    NormOverHeads,
    PerLayerEmbedding,
    QuantizedLinear,
    QueryTemperature,
    RelativeBias,
    RMSNorm,
    RotaryEmbedding,
    Router,
    ScaledBlock,
    SharedKeysAttention,
    ShortConvolution,
    SinusoidalPositionalEncoding,
    TokenEmbedding,
    rotary_frequencies,
    transformer_block,
    transformer_decoder,
    transformer_encoder,
)


def rotary(width=D // H):
    return RotaryEmbedding(rotary_frequencies(width))


SMALL = {"vocab_size": V, "d_model": D, "num_heads": H, "num_layers": 1, "max_len": 20}
SHARED = {"vocab_size": V, "hidden_size": D, "intermediate_size": F}
SHARED |= {"num_hidden_layers": 4, "num_attention_heads": H, "num_key_value_heads": 1}
SHARED |= {"head_dim": 4, "global_head_dim": 8, "num_kv_shared_layers": 2}
SHARED |= {"layer_types": 2 * ["sliding_attention", "full_attention"]}
SHARED |= {"hidden_size_per_layer_input": 5, "vocab_size_per_layer_input": V}
IMAGE = {"image_size": 6, "patch_size": 3, "channels": 1, "num_layers": 1}
MODULES = {
    QuantizedLinear: (lambda: QuantizedLinear(nn.Linear(D, F)), vectors),
    LayerNorm: (lambda: LayerNorm(D), vectors),
    RMSNorm: (lambda: RMSNorm(D), vectors),
    FeedForward: (lambda: FeedForward(D, F, dropout=0.1), vectors),
    GatedFeedForward: (lambda: GatedFeedForward(D, F, dropout=0.1), vectors),
    ClampedFeedForward: (lambda: ClampedFeedForward(D, F), vectors),
    Router: (lambda: Router(D, 4), vectors),
    Experts: (lambda: Experts(D, 4, lambda: FeedForward(D, F)), vectors),
    TokenEmbedding: (lambda: TokenEmbedding(V, D), ids),
    SinusoidalPositionalEncoding: (lambda: SinusoidalPositionalEncoding(D), vectors),
    LearnedPositionalEmbedding: (lambda: LearnedPositionalEmbedding(20, D), vectors),
    RotaryEmbedding: (rotary, heads),
    QueryTemperature: (lambda: QueryTemperature(0.5, 2), heads),
    LongRotaryEmbedding: (lambda: LongRotaryEmbedding(rotary(), rotary(), 3), heads),
    NormOverHeads: (lambda: NormOverHeads(RMSNorm(D)), heads),
    ALiBi: (lambda: ALiBi(H), lengths),
    RelativeBias: (lambda: RelativeBias(H), lengths),
    MultiHeadAttention: (
        lambda: MultiHeadAttention(D, H, num_kv_heads=2, dropout=0.1),
        with_memory,
    ),
    LateNormAttention: (
        lambda: LateNormAttention(
            D, H, rotary=rotary(), q_norm=RMSNorm(D // H), k_norm=RMSNorm(D // H)
        ),
        vectors,
    ),
    SharedKeysAttention: (
        lambda: SharedKeysAttention(D, H, v_norm=RMSNorm(D // H), k_eq_v=True),
        vectors,
    ),
    PerLayerEmbedding: (
        lambda: PerLayerEmbedding(V, 2, 5, D, RMSNorm(5)),
        ids_and_vectors,
    ),
    LayerInput: (lambda: LayerInput(D, 5, RMSNorm(D)), vectors_and_told),
    LatentAttention: (
        lambda: LatentAttention(
            D, H, kv_rank=6, head_dim=4, rotary=rotary(), dropout=0.1
        ),
        vectors,
    ),
    Indexer: (lambda: Indexer(D, 2, 4, top_k=3), vectors),
    IndexedAttention: (lambda: indexed(), vectors),
    LinearAttention: (lambda: LinearAttention(D, H), vectors),
    GatedDeltaRule: (lambda: GatedDeltaRule(D, H), vectors),
    KimiDeltaAttention: (lambda: KimiDeltaAttention(D, H), vectors),
    Mamba2: (lambda: Mamba2(D, H, state_dim=5, groups=2), vectors),
    ShortConvolution: (lambda: ShortConvolution(D), vectors),
    HyperConnection: (
        lambda: HyperConnection(nn.Linear(D, D), D, norm=RMSNorm(D), streams=3),
        streams,
    ),
    LoRALinear: (lambda: LoRALinear(nn.Linear(D, F), 2), vectors),
    MultiTokenHead: (lambda: MultiTokenHead(D, F), two_vectors),
    MultiTokenHeads: (lambda: BesideATrunk(), ids),
    Encoder: (lambda: transformer_encoder(D, H, F, 2, dropout=0.1), vectors_and_mask),
    Decoder: (lambda: transformer_decoder(D, H, F, 2, norm_first=True), with_memory),
    EncoderDecoder: (
        lambda: EncoderDecoder(
            transformer_encoder(D, H, F, 1), transformer_decoder(D, H, F, 1)
        ),
        with_memory,
    ),
    Seq2SeqLM: (lambda: SEQ2SEQ["T5"](), two_ids),
    ScaledBlock: (
        lambda: ScaledBlock(
            MultiHeadAttention(D, H), FeedForward(D, F), lambda: LayerNorm(D)
        ),
        vectors,
    ),
    SharedLayersLM: (lambda: gemma4.build(SHARED), ids),
    Block: (lambda: transformer_block(D, H, F, dropout=0.1), vectors),
    ViT: (lambda: ViT(V, **IMAGE, d_model=D, num_heads=H, dropout=0.1), images),
    BERT: (lambda: BERT(BERTConfig.tiny(**SMALL, dropout=0.1)), ids),
    CausalLM: (lambda: custom.build({**SMALL, "dropout": 0.1}), ids),
    Transformer: (
        lambda: Transformer(
            TransformerConfig.tiny(vocab_size=V, d_model=D, num_heads=H, d_ff=F)
        ),
        two_ids,
    ),
}


def indexed():
    attention = MultiHeadAttention(D, H, num_kv_heads=2, rotary=rotary())
    return IndexedAttention(attention, Indexer(D, 2, 4, top_k=3, rotary=rotary(4)))


class BesideATrunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.heads = custom.build(SMALL), MultiTokenHeads(D, 2)

    def forward(self, ids):
        return torch.cat(self.heads(self.trunk, ids), dim=1)


# Another value of each part than a GPT's.
FLAGS = {name: True for name, part in custom.PARTS.items() if part.kind is bool}
OTHER_PARTS = {
    **{name: 9.0 for name, part in custom.PARTS.items() if part.kind is float},
    **FLAGS,
    "positions": "none",
    "norm": "rms",
    "placement": "post",
    "feed_forward": "swiglu",
    "experts": 3,
    "kv_rank": 4,
    **dict.fromkeys(("top_k", "shared_experts", "kv_heads"), 1),
    "window": 3,
    "global_every": 2,
}
# What else a config must say for a part.
NEEDS = {"top_k": {"experts": 4}, "shared_experts": {"experts": 4}}
NEEDS |= {"global_every": {"window": 5}, "kv_rank": {"positions": "rotary"}}


def language_model(**chosen):
    """Return what makes a CausalLM of two layers with these parts."""
    return lambda: custom.build({**SMALL, "num_layers": 2, "max_len": 10, **chosen})


# Each part that a CausalLM can be built with is in one of these, but learned positions,
# which end.
LANGUAGE_MODELS = {
    "sinusoids": language_model(positions="sinusoidal", norm="layer", kv_heads=2),
    "ALiBi": language_model(positions="alibi", softcap=2.0),
    "T5": language_model(positions="t5", feed_forward="relu2", placement="post"),
    "window": language_model(
        positions="rotary",
        window=7,
        global_every=2,
        norm="rms_plus_one",
        placement="sandwich",
        logit_cap=3.0,
    ),
    "sinks": language_model(window=8, positions="rotary", placement="output", **FLAGS),
    "latent": language_model(kv_rank=6, positions="rotary", norm="rms"),
    "experts": language_model(
        positions="rotary",
        experts=4,
        top_k=3,
        shared_experts=1,
        feed_forward="swiglu",
    ),
}


SIDES = ("encoder", "decoder")
BART = {f"{side}_layers": 1 for side in SIDES} | {
    f"{side}_ffn_dim": F for side in SIDES
}
BART |= {f"{side}_attention_heads": H for side in SIDES}
BART |= {"vocab_size": V, "d_model": D, "max_position_embeddings": 20}
T5 = {"vocab_size": V, "d_model": D, "d_kv": 5, "d_ff": F, "num_layers": 2}
T5 |= {"num_heads": H, "relative_attention_num_buckets": 6}
SEQ2SEQ = {
    "BART": lambda: bart.build(BART),
    "T5": lambda: t5.build(T5),
    "T5 1.1": lambda: t5.build(
        {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    ),
}


def tensors(output):
    """Flatten what a module returns."""
    return output if isinstance(output, torch.Tensor) else list(output)
