"""GPT-NeoX and Pythia: GPT-2 with a part of each head rotated, and parallel sub-layers.

Black et al. 2022 (arXiv:2204.06745), section 2.1; Pythia: arXiv:2304.01373. There are
no learned positions, logits have a matrix of their own, and GELU is the exact one.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, one_of, with_defaults
from tformer.models.families.assembling import (
    Options,
    Parts,
    assemble,
    same_rotary,
    sizes,
)
from tformer.models.families.gpt2 import ACTIVATION_NAMES
from tformer.models.families.renaming import Cut, Cuts, Renaming, ending
from tformer.nn.feed_forward import FeedForward
from tformer.nn.norm import LayerNorm

DEFAULTS: Config = {
    **sizes(6144, 24_576, 44, 64),
    "model_type": "gpt_neox",
    "vocab_size": 50_432,
    "hidden_act": "gelu",
    "attention_bias": True,
    "attention_dropout": 0.0,
    "hidden_dropout": 0.0,
    "classifier_dropout": 0.1,  # of another use
    "max_position_embeddings": 2048,
    "layer_norm_eps": 1e-5,
    "use_parallel_residual": True,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    "rotary_emb_base": 10_000.0,
    "rotary_pct": 0.25,
    "rope_theta": None,  # what some files say once more
    "partial_rotary_factor": None,
    "rope_scaling": None,
    "rope_parameters": None,
}
SHARED: Options = {"vocab_size": 50_304}
SIZES: dict[str, Config] = {
    "pythia-70m": SHARED | sizes(512, 2048, 6, 8),
    "pythia-160m": SHARED | sizes(768, 3072, 12, 12),
    "pythia-410m": SHARED | sizes(1024, 4096, 24, 16),
    "pythia-1b": SHARED | sizes(2048, 8192, 16, 8),
    "pythia-1.4b": SHARED | sizes(2048, 8192, 24, 16),
    "pythia-2.8b": SHARED | sizes(2560, 10_240, 32, 32),
    "pythia-6.9b": {"vocab_size": 50_432} | sizes(4096, 16_384, 32, 32),
    "pythia-12b": {"vocab_size": 50_688} | sizes(5120, 20_480, 36, 40),
    "gpt-neox-20b": {},
}
NAMES = (
    ("gpt_neox.", ""),
    ("embed_in.", "embedding."),
    ("lm_head.", "output."),
    ("embed_out.", "output."),  # what transformers 4 called it
    ("final_layer_norm.", "norm."),
    ("layers.", "blocks."),
    ("input_layernorm.", "attention_norm."),
    ("post_attention_layernorm.", "feed_forward_norm."),
    ("attention.dense.", "attention.out_proj."),
    ("mlp.dense_h_to_4h.", "feed_forward.linear1."),
    ("mlp.dense_4h_to_h.", "feed_forward.linear2."),
)
LEFT_OUT = ending("rotary_emb.inv_freq", "attention.bias", "masked_bias")


def cuts(c: Config) -> Cuts:
    """Cut what each head reads: its query, its key, its value."""
    qkv = dict.fromkeys(("q_proj", "k_proj", "v_proj"), 1)
    return {"query_key_value": Cut(qkv, c["num_attention_heads"])}


rename = Renaming(NAMES, DEFAULTS, cuts, left_out=LEFT_OUT)


def norm(c: Config, width: int) -> nn.Module:
    """Make a norm of this width."""
    return LayerNorm(width, c["layer_norm_eps"])


def attention(c: Config, _: int) -> Options:
    """Say what attention has."""
    return {"bias": c["attention_bias"], "dropout": c["attention_dropout"]}


def network(c: Config, _: int) -> nn.Module:
    """Make the network."""
    kind = one_of("hidden_act", c["hidden_act"], ACTIVATION_NAMES)
    D, F = c["hidden_size"], c["intermediate_size"]
    return FeedForward(D, F, activation=ACTIVATION_NAMES[kind])


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Rotate the first part of each head, in words of its own."""
    words = {"rope_theta": c["rotary_emb_base"]}
    words |= {"partial_rotary_factor": c["rotary_pct"]}
    for name, value in words.items():
        one_of(name, c[name], [None, value])
    return same_rotary({**c, **words}, kinds)


def block(c: Config) -> Options:
    """Let both sub-layers read the same, if the config does not say otherwise."""
    placement = "parallel" if c["use_parallel_residual"] else "pre"
    return {"placement": placement, "dropout": c["hidden_dropout"]}


def model(c: Config) -> Options:
    """Drop of the embedded tokens, too."""
    return {"dropout": c["hidden_dropout"]}


PARTS = Parts(norm, attention, network, rotaries=rotaries, block=block, model=model)


def build(config: Config) -> CausalLM:
    """Build a GPT-NeoX with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
