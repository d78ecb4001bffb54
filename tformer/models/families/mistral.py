"""Mistral 7B: Llama with a window.

Jiang et al. 2023 (arXiv:2310.06825). A token sees the last 4096 alone, itself included;
what is further back reaches it by way of the layers.
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import assemble

DEFAULTS: Config = {
    **llama.DEFAULTS,
    "model_type": "mistral",
    "intermediate_size": 14_336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}
SIZES: dict[str, Config] = {
    "mistral-7b": {"max_position_embeddings": 32_768, "rms_norm_eps": 1e-5}
}
rename = llama.rename
PARTS = llama.PARTS


def build(config: Config) -> CausalLM:
    """Build a Mistral with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
