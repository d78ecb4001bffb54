"""GPT-2: pre-norm with LayerNorm, learned positions, biases, tied logits.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2.
"""

from collections.abc import Mapping
from functools import partial

from torch import Tensor, nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, one_of, replace_parts, with_defaults
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm
from tformer.nn.positions import LearnedPositionalEmbedding

DEFAULTS: Config = {
    "model_type": "gpt2",
    "vocab_size": 50_257,
    "n_positions": 1024,
    "n_ctx": None,  # an old word for the same
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,  # 4 · n_embd
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "tie_word_embeddings": True,
    "pad_token_id": None,
    "bias": True,  # of linear layers and norms: nanoGPT's word
}
NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
A_FIFTH = dict.fromkeys(NO_DROPOUT, 0.2)
TINY = {"n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, **NO_DROPOUT}
# nanoGPT's of Shakespeare's characters.
LETTERS = {"vocab_size": 65, "n_positions": 256, "bias": False}
SIZES: dict[str, Config] = {
    "tiny": {"vocab_size": 256, **TINY},
    "shakespeare-cpu": {**LETTERS, **TINY, "n_embd": 128, "n_layer": 4},
    "shakespeare": {**LETTERS, **A_FIFTH, "n_embd": 384, "n_layer": 6, "n_head": 6},
    "gpt2": {},
    "gpt2-medium": {"n_embd": 1024, "n_head": 16, "n_layer": 24},
    "gpt2-large": {"n_embd": 1280, "n_head": 20, "n_layer": 36},
    "gpt2-xl": {"n_embd": 1600, "n_head": 25, "n_layer": 48},
}
ACTIVATION_NAMES = {"gelu_new": "gelu_tanh", "gelu": "gelu", "relu": "relu"}
NAMES = (
    ("transformer.", ""),
    ("wte.", "embedding."),
    ("wpe.", "positions."),
    ("h.", "blocks."),
    ("ln_f.", "norm."),
    ("ln_1.", "attention_norm."),
    ("ln_2.", "feed_forward_norm."),
    ("attn.c_proj.", "attention.out_proj."),
    ("attn.", "attention."),
    ("mlp.c_fc.", "feed_forward.linear1."),
    ("mlp.c_proj.", "feed_forward.linear2."),
    ("lm_head.", "output."),
)
QKV = dict.fromkeys(("q_proj", "k_proj", "v_proj"), 1)  # one matrix, three of ours
JOINED = {"attn.c_attn": QKV}
OWN_WORDS = ("bias",)


def build(config: Config) -> CausalLM:
    """Build a GPT-2 with random weights.

    Args:
        config: Hugging Face's words; `DEFAULTS` has the others, `SIZES` presets.
    """
    c = with_defaults(config, DEFAULTS)
    one_of("scale_attn_weights", c["scale_attn_weights"], [True])
    for name in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
        one_of(name, c[name], [False])
    kind = one_of("activation_function", c["activation_function"], ACTIVATION_NAMES)
    D, bias = c["n_embd"], c["bias"]
    F = 4 * D if c["n_inner"] is None else c["n_inner"]
    norm = partial(LayerNorm, D, c["layer_norm_epsilon"], bias=bias)
    blocks = [
        Block(
            MultiHeadAttention(D, c["n_head"], bias=bias, dropout=c["attn_pdrop"]),
            FeedForward(D, F, activation=ACTIVATION_NAMES[kind], bias=bias),
            norm,
            dropout=c["resid_pdrop"],
        )
        for _ in range(c["n_layer"])
    ]
    tied = c["tie_word_embeddings"]
    model = CausalLM(
        TokenEmbedding(c["vocab_size"], D, scale=False),
        blocks,
        norm(),
        positions=LearnedPositionalEmbedding(c["n_positions"], D),
        output=None if tied else nn.Linear(D, c["vocab_size"], bias=False),
        dropout=c["embd_pdrop"],
        max_len=c["n_positions"],
        pad_id=c["pad_token_id"],
        config=c,
    )
    model.reset_parameters()
    return model


def rename(state: Mapping[str, Tensor], config: Config) -> dict[str, Tensor]:  # noqa: ARG001
    """Name Hugging Face's weights as ours: there matrices are (in, out), qkv one."""
    ours = {}
    for name, x in state.items():
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            continue  # the causal mask, which old files hold
        x = x.t() if x.ndim == 2 and ".c_" in name else x
        thirds = x.tensor_split(3) if ".c_attn." in name else [x]
        for part, third in zip(QKV, thirds, strict=False):
            ours[replace_parts(name.replace("c_attn", part), NAMES)] = third
    return ours
