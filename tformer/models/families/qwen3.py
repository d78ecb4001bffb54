"""Qwen3, dense: Qwen2 with a norm of each query and each key in place of biases.

Yang et al. 2025 (arXiv:2505.09388). Each head is normalised by itself. A head is 128
wide, however wide the model is.
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, qwen2, with_defaults
from tformer.models.families.assembling import (
    Options,
    assemble,
    norms_of_heads,
    only,
    sizes,
)

DEFAULTS: Config = {
    **qwen2.DEFAULTS,
    "model_type": "qwen3",
    "head_dim": 128,
    "attention_bias": False,
    "qk_norm": True,
}
SHARED: Options = {"rope_theta": 1_000_000.0, "max_position_embeddings": 40_960}
TIED: Options = {**SHARED, "tie_word_embeddings": True}
SIZES: dict[str, Config] = {
    "qwen3-0.6b": TIED | sizes(1024, 3072, 28, 16, 8),
    "qwen3-1.7b": TIED | sizes(2048, 6144, 28, 16, 8),
    "qwen3-4b": TIED | sizes(2560, 9728, 36, 32, 8),
    "qwen3-8b": SHARED | sizes(4096, 12_288, 36, 32, 8),
    "qwen3-14b": SHARED | sizes(5120, 17_408, 40, 40, 8),
    "qwen3-32b": SHARED | sizes(5120, 25_600, 64, 64, 8),
}
rename = llama.rename
OWN_WORDS = ("qk_norm",)


def attention(c: Config, layer: int) -> Options:
    """Normalise each head of a query and of a key."""
    only(c, qk_norm=True)
    return {**llama.attention(c, layer), **norms_of_heads(c, llama.norm)}


PARTS = qwen2.PARTS._replace(attention=attention)


def build(config: Config) -> CausalLM:
    """Build a Qwen3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
