"""T5: what changed since the Transformer is pre-norm, RMSNorm, a bias for the distance.

Raffel et al. 2019 (arXiv:1910.10683), section 2.1; version 1.1, with a gate, is of its
code. No layer has a bias. No position is added: a learned number for each bucket of
distances is added to the scores, the same in all layers of a stack. The scores are not
divided by √Dh. In training, the dropout after the last norm of a stack is left out
here.
"""

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn

from tformer.models.families import Config, one_of, replace_parts, with_defaults
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.nn.block import Block
from tformer.nn.decoder import Decoder
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.encoder import Encoder
from tformer.nn.feed_forward import FeedForward, GatedFeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import RMSNorm
from tformer.nn.relative import RelativeBias

DEFAULTS: Config = {
    "model_type": "t5",
    "vocab_size": 32_128,
    "n_positions": 512,  # of transformers 4; the model has no end
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": None,  # num_layers
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "dropout_rate": 0.1,
    "layer_norm_epsilon": 1e-6,
    "initializer_factor": 1.0,
    "feed_forward_proj": "relu",
    "is_gated_act": None,  # said by feed_forward_proj, as the next
    "dense_act_fn": None,
    "tie_word_embeddings": True,
    "scale_decoder_outputs": None,  # of transformers 5: tie_word_embeddings
    "pad_token_id": 0,
}
SIZES: dict[str, Config] = {
    "t5-small": {},
    "t5-base": {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    "t5-large": {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16},
}
GATED: Config = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SIZES["t5-v1.1-small"] = {**GATED, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
SIZES["t5-v1.1-base"] = {**GATED, **SIZES["t5-base"], "d_ff": 2048}
SIZES["t5-v1.1-large"] = {**GATED, **SIZES["t5-large"], "d_ff": 2816}
# Hugging Face's words, and what they compute: "gated-gelu" is the approximation.
NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "relu": partial(FeedForward, activation="relu", bias=False),
    "gated-gelu": partial(GatedFeedForward, gate="geglu_tanh"),
    "gated-silu": partial(GatedFeedForward, gate="swiglu"),
}
TABLE = "attention.relative.table"  # one for all blocks: it comes in the first
OF_BOTH = (
    ("shared.", "src_embedding."),
    ("encoder.embed_tokens.", "src_embedding."),
    ("decoder.embed_tokens.", "tgt_embedding."),
    ("final_layer_norm.", "norm."),
    ("block.", "blocks."),
    ("layer.0.SelfAttention.relative_attention_bias.weight", TABLE),
    ("layer.0.SelfAttention.q.", "attention.q_proj."),
    ("layer.0.SelfAttention.k.", "attention.k_proj."),
    ("layer.0.SelfAttention.v.", "attention.v_proj."),
    ("layer.0.SelfAttention.o.", "attention.out_proj."),
    ("layer.1.EncDecAttention.q.", "cross_attention.q_proj."),
    ("layer.1.EncDecAttention.k.", "cross_attention.k_proj."),
    ("layer.1.EncDecAttention.v.", "cross_attention.v_proj."),
    ("layer.1.EncDecAttention.o.", "cross_attention.out_proj."),
    ("wi.", "linear1."),
    ("wi_0.", "gate_proj."),
    ("wi_1.", "up_proj."),
    ("lm_head.", "output."),
    ("layer.0.layer_norm.", "attention_norm."),
)
OF_ENCODER = (
    ("layer.1.layer_norm.", "feed_forward_norm."),
    ("layer.1.DenseReluDense.", "feed_forward."),
)
OF_DECODER = (
    ("layer.1.layer_norm.", "cross_attention_norm."),
    ("layer.2.layer_norm.", "feed_forward_norm."),
    ("layer.2.DenseReluDense.", "feed_forward."),
)
LAST = ("wo.", "linear2."), ("wo.", "down_proj.")  # of a network, of one with a gate
NAMES = (*OF_BOTH, *OF_ENCODER, *OF_DECODER, *LAST)


def build(config: Config) -> Seq2SeqLM:
    """Build a T5 with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    kind = one_of("feed_forward_proj", c["feed_forward_proj"], NETWORKS)
    gated, act = kind.startswith("gated-"), kind.removeprefix("gated-")
    one_of("is_gated_act", c["is_gated_act"], [None, gated])
    act = "gelu_new" if kind == "gated-gelu" else act
    one_of("dense_act_fn", c["dense_act_fn"], [None, act])
    tied, scaled = c["tie_word_embeddings"], c["scale_decoder_outputs"]
    one_of("scale_decoder_outputs", scaled, [None, False, tied])
    tied = tied and scaled is not False
    D, V, eps = c["d_model"], c["vocab_size"], c["layer_norm_epsilon"]
    layers = c["num_layers"]
    norm = partial(RMSNorm, D, eps, cast_first=True)
    below = layers if c["num_decoder_layers"] is None else c["num_decoder_layers"]
    model = Seq2SeqLM(
        Encoder(make_blocks(c, layers, norm, decoder=False), norm()),
        Decoder(make_blocks(c, below, norm, decoder=True), norm()),
        TokenEmbedding(V, D, scale=False),
        output=None if tied else nn.Linear(D, V, bias=False),
        dropout=c["dropout_rate"],
        logit_scale=D**-0.5 if tied else 1.0,
        max_len=c["n_positions"],
        pad_id=c["pad_token_id"],
        config=c,
    )
    draw(model, c)
    return model


def make_blocks(
    c: Config, layers: int, norm: Callable[[], nn.Module], *, decoder: bool
) -> list[Block]:
    """Make the blocks of a stack, whose attentions share one table of biases."""
    D, dropout = c["d_model"], c["dropout_rate"]
    relative = RelativeBias(
        c["num_heads"],
        num_buckets=c["relative_attention_num_buckets"],
        max_distance=c["relative_attention_max_distance"],
        bidirectional=not decoder,
    )
    options = {"head_dim": c["d_kv"], "bias": False, "dropout": dropout, "scale": 1.0}
    attention = partial(MultiHeadAttention, D, c["num_heads"], **options)
    network = NETWORKS[c["feed_forward_proj"]]
    return [
        Block(
            attention(relative=relative),
            network(D, c["d_ff"], dropout=dropout),
            norm,
            cross_attention=attention() if decoder else None,
            dropout=dropout,
        )
        for _ in range(layers)
    ]


def draw(model: Seq2SeqLM, c: Config) -> None:
    """Draw new weights, as T5's code: 1/√Dh is in those of the queries.

    The scores are not divided by it, and begin as small as if they were.
    """
    D, F, Dh, H = c["d_model"], c["d_ff"], c["d_kv"], c["num_heads"]
    deviations = {
        "q_proj.weight": (D * Dh) ** -0.5,
        "out_proj.weight": (H * Dh) ** -0.5,
    }
    deviations |= {"linear2.weight": F**-0.5, "down_proj.weight": F**-0.5}
    deviations |= {"embedding.weight": 1.0, "output.weight": 1.0}
    for name, p in model.named_parameters():
        if p.ndim > 1:
            known = [std for end, std in deviations.items() if name.endswith(end)]
            nn.init.normal_(p, std=c["initializer_factor"] * [*known, D**-0.5][0])


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:
    """Name Hugging Face's weights as ours; without `lm_head` the embedding is it."""
    last = LAST[str(config.get("feed_forward_proj")).startswith("gated")]
    ours = {}
    for name, x in state.items():
        if "EncDecAttention.relative_attention_bias." in name:
            continue  # of the first files, and used by no code
        own = OF_ENCODER if name.startswith("encoder.") else OF_DECODER
        ours[replace_parts(name, (*OF_BOTH, *own, last))] = x
    if "src_embedding.weight" in ours:
        ours.setdefault("output.weight", ours["src_embedding.weight"])
    return ours
