"""SmolLM3: Llama without positions in each fourth layer.

Bakouch et al. 2025, "SmolLM3: smol, multilingual, long-context reasoner"; the layers
are those of Yang et al. 2025 (arXiv:2501.18795), "RoPE to NoPE and back again".
"""

from collections.abc import Sequence

from torch import nn

from tformer.models.causal_lm import CausalLM
from tformer.models.families import Config, llama, with_defaults
from tformer.models.families.assembling import (
    assemble,
    layer_types_of,
    same_rotary,
    sizes,
)

DEFAULTS: Config = {
    **llama.DEFAULTS,
    **sizes(2048, 11_008, 36, 16, 4),
    "model_type": "smollm3",
    "vocab_size": 128_256,
    "max_position_embeddings": 32_768,
    "rope_theta": 2_000_000.0,
    "tie_word_embeddings": True,
    "pad_token_id": 128_004,
    "use_sliding_window": False,
    "max_window_layers": None,  # says nothing
    "layer_types": None,
    "no_rope_layers": None,  # of each layer 1 = it rotates, 0 = it does not
    "no_rope_layer_interval": 4,
}
SIZES: dict[str, Config] = {
    "smollm3-3b": {"rope_theta": 5_000_000.0, "max_position_embeddings": 65_536}
}
rename = llama.rename


def rotates(c: Config) -> Sequence[object]:
    """Say of each layer whether it rotates."""
    layers, every = c["num_hidden_layers"], c["no_rope_layer_interval"]
    given = c["no_rope_layers"]
    if given is None:
        return [(i + 1) % every for i in range(layers)]
    if len(given) < layers:
        raise ValueError(f"no_rope_layers ({given}) must be of {layers} layers")
    return list(given[:layers])


def layer_types(c: Config) -> Sequence[str]:
    """Give the layers that do not rotate a window, if the config has one."""
    windows = c["use_sliding_window"] and c["sliding_window"] is not None
    near = [windows and not each for each in rotates(c)]
    kinds = layer_types_of(
        c, lambda i: "sliding_attention" if near[i] else "full_attention"
    )
    return kinds if windows else ["full_attention"] * len(kinds)


def rotaries(c: Config, kinds: Sequence[str]) -> Sequence[nn.Module | None]:
    """Leave out the rotation of some layers."""
    turned = zip(rotates(c), same_rotary(c, kinds), strict=True)
    return [rotary if each else None for each, rotary in turned]


PARTS = llama.PARTS._replace(layer_types=layer_types, rotaries=rotaries)


def build(config: Config) -> CausalLM:
    """Build a SmolLM3 with random weights; arguments and errors as of `gpt2.build`."""
    return assemble(with_defaults(config, DEFAULTS), PARTS)
