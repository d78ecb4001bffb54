"""MiniMax-M2: Mixtral with many experts, and OLMo 2's norm over all heads.

MiniMax 2025 (Hugging Face's minimax_m2). The norm is of queries and of keys. The
router's scores are sigmoids, balanced by a bias; half of each head is rotated.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import (
    Config,
    llama,
    mixtral,
    mixtures,
    olmo2,
    with_defaults,
)
from tformer.models.families.assembling import (
    Options,
    assemble,
    head_dim_of,
    only,
    sizes,
)

DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    **sizes(3072, 1536, 62, 48, 8),
    "model_type": "minimax_m2",
    "vocab_size": 200_064,
    "head_dim": 128,
    "max_position_embeddings": 196_608,
    "rope_theta": 5_000_000.0,
    "rotary_dim": None,  # the word of the released files for a part of each head
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "router_jitter_noise": 0.0,
}
SIZES: dict[str, Config] = {"minimax-m2": {"rotary_dim": 64}}
NAMES = (
    ("e_score_correction_bias", "router.selection_bias"),
    *olmo2.OVER_HEADS,
    *mixtral.NAMES,
)
rename = mixtures.rename._replace(names=NAMES)


def attention(c: Config, layer: int) -> Options:
    """Normalise all heads of a query together, and all of a key."""
    only(c, attention_bias=False)
    return {**llama.attention(c, layer), **olmo2.norms_over_heads(c, llama.norm)}


def network(c: Config, layer: int) -> nn.Module:
    """Make the experts: sigmoids, and a bias for the choice."""
    only(c, router_jitter_noise=0.0)
    E, F = c["num_local_experts"], c["intermediate_size"]
    return mixtures.network(c, layer, E, F, scores="sigmoid")


PARTS = llama.PARTS._replace(attention=attention, network=network)


def build(config: Config) -> CausalLM:
    """Build a MiniMax-M2 with random weights; arguments, errors as of `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    if c["rotary_dim"] is not None:
        c["partial_rotary_factor"] = c["rotary_dim"] / head_dim_of(c)
    return assemble(c, PARTS)
