"""Qwen2 and Qwen2.5, dense: Llama with biases of queries, keys and values alone.

Yang et al. 2024 (arXiv:2407.10671), section 2.2.1; Qwen2.5: arXiv:2412.15115. The last
projection of attention and the network have none.
"""

from collections.abc import Sequence

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    Options,
    assemble,
    layer_types_of,
    only,
    sizes,
)

DEFAULTS: Config = {
    **llama.DEFAULTS,
    "model_type": "qwen2",
    "vocab_size": 151_936,
    "intermediate_size": 22_016,
    "num_key_value_heads": 32,
    "max_position_embeddings": 32_768,
    "attention_bias": True,
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,  # so many layers come first, without one
    "layer_types": None,
}
LONG: Options = {"rope_theta": 1_000_000.0}
TIED: Options = {**LONG, "tie_word_embeddings": True}
WIDE: Options = {**LONG, "vocab_size": 152_064}
SIZES: dict[str, Config] = {
    "qwen2.5-0.5b": TIED | sizes(896, 4864, 24, 14, 2),
    "qwen2.5-1.5b": TIED | sizes(1536, 8960, 28, 12, 2),
    "qwen2.5-3b": TIED | sizes(2048, 11_008, 36, 16, 2),
    "qwen2.5-7b": WIDE | sizes(3584, 18_944, 28, 28, 4),
    "qwen2.5-14b": WIDE | sizes(5120, 13_824, 48, 40, 8),
    "qwen2.5-32b": WIDE | sizes(5120, 27_648, 64, 40, 8),
    "qwen2.5-72b": WIDE | sizes(8192, 29_568, 80, 64, 8),
}
rename = llama.rename


def attention(c: Config, layer: int) -> Options:
    """Leave the last projection without a bias."""
    only(c, attention_bias=True)
    return {**llama.attention(c, layer), "out_bias": False}


def layer_types(c: Config) -> Sequence[str]:
    """Give the last layers the window, or those that `layer_types` names."""

    def otherwise(layer: int) -> str:
        local = c["use_sliding_window"] and layer >= c["max_window_layers"]
        return "sliding_attention" if local else "full_attention"

    kinds = layer_types_of(c, otherwise)
    return kinds if c["use_sliding_window"] else ["full_attention"] * len(kinds)


PARTS = llama.PARTS._replace(attention=attention, layer_types=layer_types)


def build(config: Config) -> CausalLM:
    """Build a Qwen2 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
