"""BART: what changed since the Transformer is learned positions, and a norm after them.

Lewis et al. 2019 (arXiv:1910.13461); the sizes of fairseq's `bart_base`, `bart_large`.
GELU stands for ReLU, and embedded tokens are not multiplied by √D.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer.models.families import Config, one_of, replace_parts, with_defaults
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.block import Block
from tformer.nn.decoder import Decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import Encoder
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm
from tformer.nn.positions import LearnedPositionalEmbedding

DEFAULTS: Config = {
    "model_type": "bart",
    "vocab_size": 50_265,
    "max_position_embeddings": 1024,
    "d_model": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "activation_function": "gelu",
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "scale_embedding": False,
    "normalize_before": False,  # of transformers 3, as the next three
    "normalize_embedding": True,
    "add_final_layer_norm": False,
    "num_hidden_layers": None,  # an old word for encoder_layers
    "static_position_embeddings": False,
    "pad_token_id": 1,
    "tie_word_embeddings": True,
}
HALF = {"encoder_layers": 6, "decoder_layers": 6}
SMALL = {"encoder_attention_heads": 12, "decoder_attention_heads": 12}
SMALL |= {"d_model": 768, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}
SIZES: dict[str, Config] = {"bart-base": {**HALF, **SMALL}, "bart-large": {}}
ACTIVATION_NAMES = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh"}
ACTIVATION_NAMES |= {"swish": "silu", "silu": "silu", "relu2": "relu2"}
NAMES = (
    ("model.", ""),
    ("shared.", "src_embedding."),  # and the target's too, if the two are one
    ("encoder.embed_tokens.", "src_embedding."),
    ("decoder.embed_tokens.", "tgt_embedding."),
    ("encoder.embed_positions.", "src_positions."),
    ("decoder.embed_positions.", "tgt_positions."),
    ("encoder.layernorm_embedding.", "src_norm."),
    ("decoder.layernorm_embedding.", "tgt_norm."),
    ("layers.", "blocks."),
    ("self_attn.", "attention."),
    ("self_attn_layer_norm.", "attention_norm."),
    ("encoder_attn.", "cross_attention."),
    ("encoder_attn_layer_norm.", "cross_attention_norm."),
    ("fc1.", "feed_forward.linear1."),
    ("fc2.", "feed_forward.linear2."),
    ("final_layer_norm.", "feed_forward_norm."),
    ("final_logits_bias", "logit_bias"),
    ("lm_head.", "output."),
)


def build(config: Config) -> Seq2SeqLM:
    """Build a BART with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    one_of("normalize_embedding", c["normalize_embedding"], [True])
    one_of("static_position_embeddings", c["static_position_embeddings"], [False])
    D, longest = c["d_model"], c["max_position_embeddings"]
    sides: dict[str, nn.Module] = {}
    for side in ("src", "tgt"):
        positions = LearnedPositionalEmbedding(longest, D, offset=2)
        sides |= {f"{side}_positions": positions, f"{side}_norm": LayerNorm(D, 1e-5)}
    return assemble(c, c["vocab_size"], sides, own_target=not c["tie_word_embeddings"])


def assemble(
    c: Config, tgt_size: int, sides: Mapping[str, Any], *, own_target: bool
) -> Seq2SeqLM:
    """Put stacks and embeddings together, with what else each side has.

    Args:
        c: the words of the config.
        tgt_size: tokens of the target.
        sides: positions and norms of what is embedded.
        own_target: whether the target has an embedding of its own.
    """
    for name in ("normalize_before", "add_final_layer_norm"):
        one_of(name, c[name], [False])
    one_of("num_hidden_layers", c["num_hidden_layers"], [None, c["encoder_layers"]])
    for name in ("encoder_layerdrop", "decoder_layerdrop"):
        one_of(name, c[name], [0.0])
    D, scale = c["d_model"], c["scale_embedding"]
    tied = c["tie_word_embeddings"]
    model = Seq2SeqLM(
        Encoder(make_blocks(c, "encoder")),
        Decoder(make_blocks(c, "decoder")),
        TokenEmbedding(c["vocab_size"], D, scale=scale),
        tgt_embedding=TokenEmbedding(tgt_size, D, scale=scale) if own_target else None,
        output=None if tied else nn.Linear(D, tgt_size, bias=False),
        logit_bias=torch.zeros(tgt_size),
        dropout=c["dropout"],
        max_len=c["max_position_embeddings"],
        pad_id=c["pad_token_id"],
        config=c,
        **sides,
    )
    model.reset_parameters()
    return model


def make_blocks(c: Config, side: str) -> list[Block]:
    """Make the blocks of the encoder, or of the decoder: post-norm, as the paper's."""
    D, F, H = c["d_model"], c[f"{side}_ffn_dim"], c[f"{side}_attention_heads"]
    kind = one_of("activation_function", c["activation_function"], ACTIVATION_NAMES)
    options = {"activation": ACTIVATION_NAMES[kind], "dropout": c["activation_dropout"]}
    attention = partial(MultiHeadAttention, D, H, dropout=c["attention_dropout"])
    return [
        Block(
            attention(),
            FeedForward(D, F, **options),
            partial(LayerNorm, D, 1e-5),
            cross_attention=attention() if side == "decoder" else None,
            placement="post",
            dropout=c["dropout"],
        )
        for _ in range(c[f"{side}_layers"])
    ]


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:  # noqa: ARG001
    """Name Hugging Face's weights as ours; both sides may share one embedding."""
    shared = [x for name, x in state.items() if name.endswith("shared.weight")]
    rest = {n: x for n, x in state.items() if not n.endswith("shared.weight")}
    ours = {replace_parts(name, NAMES): x for name, x in rest.items()}
    for x in shared:
        for name in ("src_embedding.weight", "tgt_embedding.weight"):
            ours.setdefault(name, x)
    if "logit_bias" in ours:
        x = ours["logit_bias"]
        ours["logit_bias"] = x.reshape(x.shape[1])  # theirs is (1, V)
    return ours
