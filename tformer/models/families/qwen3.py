"""Qwen3, dense: Llama with a norm of each query and each key.

Yang et al. 2025 (arXiv:2505.09388).
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama

DEFAULTS: Config = {
    **llama.DEFAULTS,
    "model_type": "qwen3",
    "vocab_size": 151_936,
    "intermediate_size": 22_016,
    "num_key_value_heads": 32,
    "head_dim": 128,
    "max_position_embeddings": 32_768,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
    "layer_types": None,
    "qk_norm": True,
}
rename = llama.rename


def build(config: Config) -> CausalLM:
    """Build a Qwen3 with random weights; arguments and errors as of `gpt2.build`."""
    return llama.build(config, DEFAULTS)
