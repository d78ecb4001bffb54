"""Gemma 3, its text: Gemma 2 with QK-norm, no softcaps, windows in five of six layers.

Gemma team 2025 (arXiv:2503.19786), section 2.1: five layers with a window and the base
10,000 of the rotation come before one that sees all tokens, with the base 1,000,000.
"""

from collections.abc import Sequence

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, gemma2, with_defaults
from tformer.models.families.assembling import (
    Options,
    all_but_every,
    assemble,
    rotary_of_each_type,
    sizes,
)

DEFAULTS: Config = {
    **gemma2.DEFAULTS,
    "model_type": "gemma3_text",
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "sliding_window_pattern": 6,
    "_sliding_window_pattern": 6,  # transformers 5 writes it, beside layer_types
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "use_bidirectional_attention": False,
}
SHARED: Options = {"vocab_size": 262_144, "max_position_embeddings": 32_768}
SIZES: dict[str, Config] = {
    "gemma-3-270m": SHARED | sizes(640, 2048, 18, 4, 1) | {"sliding_window": 512},
    "gemma-3-1b": SHARED | sizes(1152, 6912, 26, 4, 1) | {"sliding_window": 512},
}
rename = gemma2.rename


def attention(c: Config, layer: int) -> Options:
    """Normalise each head of a query and of a key, with a gain of 1 + w."""
    width = c["head_dim"]
    norms = {name: gemma2.norm(c, width) for name in ("q_norm", "k_norm")}
    return {**gemma2.attention(c, layer), **norms}


def layer_types(c: Config) -> Sequence[str]:
    """Give the layers a window, but each sixth."""
    return all_but_every(c["sliding_window_pattern"], c)


PARTS = gemma2.PARTS._replace(
    attention=attention, layer_types=layer_types, rotaries=rotary_of_each_type
)


def build(config: Config) -> CausalLM:
    """Build a Gemma 3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
