"""Qwen3-MoE: Qwen3 with experts, many and small, in place of feed-forward networks.

Yang et al. 2025 (arXiv:2505.09388). A router chooses 8 of 128 for each token.
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, mixtures, qwen3, with_defaults
from tformer.models.families.assembling import assemble, sizes

DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    **sizes(2048, 6144, 24, 32, 4),  # 6144 is of layers without experts
    "model_type": "qwen3_moe",
    "vocab_size": 151_936,
    "max_position_embeddings": 32_768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": None,  # of old files, which nobody reads
    "qk_norm": True,
    "num_experts": 128,
    "num_local_experts": None,  # transformers 5 writes this in place of num_experts
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "norm_topk_prob": False,
    "decoder_sparse_step": 1,
    "mlp_only_layers": None,
}
OF_QWEN3 = {"norm_topk_prob": True, "head_dim": 128, "rope_theta": 1_000_000.0}
OF_QWEN3 |= {"max_position_embeddings": 40_960}
SIZES: dict[str, Config] = {
    "qwen3-30b-a3b": OF_QWEN3 | {"num_hidden_layers": 48},
    "qwen3-235b-a22b": OF_QWEN3
    | sizes(4096, 12_288, 94, 64, 4)
    | {"moe_intermediate_size": 1536},
}
rename = mixtures.rename


def network(c: Config, layer: int) -> nn.Module:
    """Make the network of a layer: experts, or one dense network."""
    return mixtures.network(
        c,
        layer,
        c["num_experts"],
        c["moe_intermediate_size"],
        renormalise=c["norm_topk_prob"],
        selection_bias=False,
    )


def layer_types(c: Config) -> Sequence[str]:
    """Give all layers the window, or none."""
    kind = "sliding_attention" if c["use_sliding_window"] else "full_attention"
    return [kind] * int(c["num_hidden_layers"])


PARTS = qwen3.PARTS._replace(network=network, layer_types=layer_types)


def build(config: Config) -> CausalLM:
    """Build a Qwen3-MoE with random weights; arguments and errors as `gpt2.build`."""
    c = with_defaults(config, DEFAULTS)
    c["num_experts"] = c.pop("num_local_experts") or c["num_experts"]
    return assemble(c, PARTS)
