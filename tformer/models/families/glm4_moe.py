"""GLM-4.5: DeepSeek-V3's experts behind Qwen3's attention, of which a half is rotated.

Zhipu AI 2025 (arXiv:2508.06471). Queries, keys and values have biases; only the larger
model has norms of queries and keys. The experts stand in one group.
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, deepseek_v3, llama, mixtures, with_defaults
from tformer.models.families.assembling import Options, assemble, norms_of_heads, sizes

DEFAULTS: Config = {
    **mixtures.OF_LLAMA,
    **sizes(4096, 10_944, 46, 96, 8),
    **deepseek_v3.OF_EXPERTS,
    "model_type": "glm4_moe",
    "vocab_size": 151_552,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "partial_rotary_factor": 0.5,
    "use_qk_norm": False,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 128,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 1.0,
    "first_k_dense_replace": 1,
}
OF_BOTH = {"head_dim": 128, "attention_bias": True, "rope_theta": 1_000_000.0}
SIZES: dict[str, Config] = {
    "glm-4.5": {
        **OF_BOTH,
        **sizes(5120, 12_288, 92, 96, 8),
        "moe_intermediate_size": 1536,
        "n_routed_experts": 160,
        "routed_scaling_factor": 2.5,
        "first_k_dense_replace": 3,
        "use_qk_norm": True,
    },
    "glm-4.5-air": OF_BOTH,
}
rename = mixtures.rename._replace(names=deepseek_v3.EXPERT_NAMES)


def attention(c: Config, layer: int) -> Options:
    """Leave the last projection without a bias; the larger model has norms."""
    norms = norms_of_heads(c, llama.norm) if c["use_qk_norm"] else {}
    return {**llama.attention(c, layer), "out_bias": False, **norms}


PARTS = llama.PARTS._replace(attention=attention, network=deepseek_v3.network)


def build(config: Config) -> CausalLM:
    """Build a GLM-4.5 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
