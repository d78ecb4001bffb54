"""Qwen3, dense: Qwen2 with a norm of each query and each key in place of biases.

Yang et al. 2025 (arXiv:2505.09388).
"""

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, only, qwen2, with_defaults
from tformer.models.families.assembling import Options, assemble

DEFAULTS: Config = {
    **qwen2.DEFAULTS,
    "model_type": "qwen3",
    "head_dim": 128,
    "attention_bias": False,
    "qk_norm": True,
}
SIZES: dict[str, Config] = {}
rename = llama.rename


def attention(c: Config, layer: int) -> Options:
    """Normalise each head of a query and of a key."""
    only(c, qk_norm=True)
    norms = {name: llama.norm(c, c["head_dim"]) for name in ("q_norm", "k_norm")}
    return {**llama.attention(c, layer), **norms}


PARTS = qwen2.PARTS._replace(attention=attention)


def build(config: Config) -> CausalLM:
    """Build a Qwen3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
