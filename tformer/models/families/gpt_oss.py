"""gpt-oss: experts, sinks, windows in every other layer, biases everywhere.

OpenAI 2025 (arXiv:2508.10925). It is Llama otherwise. The experts have bounded gates
(`ClampedFeedForward`), and a router chooses four of them for each token;
YaRN slows the rotation for texts of 131,072 tokens.
"""

from functools import partial

import torch
from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, mixtures, olmo2, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    only,
    sizes,
)
from tformer.models.families.renaming import IN_TURN, Renaming
from tformer.nn.clamped import ClampedFeedForward
from tformer.nn.experts import Experts

DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    **sizes(2880, 2880, 36, 64, 8),
    "model_type": "gpt_oss",
    "vocab_size": 201_088,
    "head_dim": 64,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "attention_bias": True,
    "sliding_window": 128,
    "layer_types": None,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "swiglu_alpha": 1.702,
    "swiglu_limit": 7.0,
    "rope_theta": 150_000.0,
}
YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0}
YARN |= {"truncate": False, "original_max_position_embeddings": 4096}
SIZES: dict[str, Config] = {
    "gpt-oss-20b": {"num_hidden_layers": 24, "num_local_experts": 32},
    "gpt-oss-120b": {},
}
NAMES = (("mlp.router.", "mlp.router.proj."), *llama.NAMES)
# In files, too, experts are one tensor (E, in, out); columns 0, 2, 4, … are the gate.
rename = Renaming(NAMES, cuts=lambda _: IN_TURN, turned=("mlp.experts.",), in_one=True)


def attention(c: Config, layer: int) -> Options:
    """Let each head have a sink."""
    sinks = nn.Parameter(torch.zeros(c["num_attention_heads"]))
    return {**llama.attention(c, layer), "sinks": sinks}


def network(c: Config, _: int) -> nn.Module:
    """Make the experts, with biases, and a router that has one too."""
    only(c, hidden_act="silu")
    D, F = c["hidden_size"], c["intermediate_size"]
    bounds = {"limit": c["swiglu_limit"], "alpha": c["swiglu_alpha"]}
    return Experts(
        D,
        c["num_local_experts"],
        partial(ClampedFeedForward, D, F, **bounds),
        top_k=c["num_experts_per_tok"],
        bias=True,
        selection_bias=False,
    )


PARTS = llama.PARTS._replace(
    norm=olmo2.norm,
    attention=attention,
    network=network,
    layer_types=partial(all_but_every, 2),
)


def build(config: Config) -> CausalLM:
    """Build a gpt-oss with random weights; arguments and errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    if not (c["rope_parameters"] or c["rope_scaling"]):
        c["rope_parameters"] = YARN
    return assemble(c, PARTS)
