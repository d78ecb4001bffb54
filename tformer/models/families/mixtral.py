"""Mixtral: Mistral without a window, with experts in place of feed-forward networks.

Jiang et al. 2024 (arXiv:2401.04088). A router chooses two of eight for each token.
"""

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, mixtures, with_defaults
from tformer.models.families.assembling import assemble, only, sizes

DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    "model_type": "mixtral",
    "intermediate_size": 14_336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "router_jitter_noise": 0.0,
}
SIZES: dict[str, Config] = {
    "mixtral-8x7b": {"max_position_embeddings": 32_768},
    "mixtral-8x22b": {
        **sizes(6144, 16_384, 56, 48, 8),
        "vocab_size": 32_768,
        "max_position_embeddings": 65_536,
    },
}
NAMES = (
    ("block_sparse_moe.", "mlp."),
    ("w1.", "gate_proj."),
    ("w2.", "down_proj."),
    ("w3.", "up_proj."),
    *mixtures.NAMES,
)
rename = mixtures.rename._replace(names=NAMES)


def network(c: Config, layer: int) -> nn.Module:
    """Make the experts: softmax, and of the k chosen the weights sum to 1."""
    only(c, router_jitter_noise=0.0)
    E, F = c["num_local_experts"], c["intermediate_size"]
    return mixtures.network(c, layer, E, F, selection_bias=False)


PARTS = llama.PARTS._replace(network=network)


def build(config: Config) -> CausalLM:
    """Build a Mixtral with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
