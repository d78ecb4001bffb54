"""How a config says rotation: in the words of transformers 4 and of 5."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from tformer.models.families import Config, one_of
from tformer.nn.rotary import (
    LongRotaryEmbedding,
    RotaryEmbedding,
    rotary_frequencies,
)
from tformer.nn.rotary_scaling import (
    keep_fastest,
    longrope_factor,
    scale_linear,
    scale_llama3,
    scale_yarn,
    yarn_factor,
)

LAYER_TYPES = ("full_attention", "sliding_attention")
KINDS = ("default", "linear", "llama3", "yarn", "proportional")
LONG = "short_factor", "long_factor"  # of LongRoPE: a divisor of each pair
# transformers 4 has the first two, 5 the last, which holds them all.
DEFAULTS: Config = {
    "rope_theta": 10_000.0,
    "rope_scaling": None,
    "partial_rotary_factor": 1.0,
    "rope_parameters": None,
}


def rope_words(c: Config, layer_type: str = "full_attention") -> dict[str, Any]:
    """Gather the words of a type of layers, with `rope_theta` and `rope_type`.

    In transformers 5 `rope_parameters` may hold those of each type, by its name. In 4
    `rope_scaling` holds them, but the base and the part of the width stand beside it;
    where layers with a window have words of their own, theirs is the base alone.
    """
    new, old, base = c["rope_parameters"] or {}, c["rope_scaling"] or {}, "rope_theta"
    if layer_type == "sliding_attention":
        old, base = {}, "rope_local_base_freq" if "rope_local_base_freq" in c else base
    if nested := [kind for kind in LAYER_TYPES if kind in new]:
        for name, value in new.items():
            if name not in nested:
                raise ValueError(f"rope_parameters has {name} ({value!r}) beside types")
        new = new.get(layer_type) or {}
    words = {"rope_theta": c[base], **old, **new}
    words.setdefault("partial_rotary_factor", c["partial_rotary_factor"])
    kind = words.pop("type", "default")
    return {"rope_type": kind, **words}


def rotary_of(
    c: Config,
    head_dim: int,
    words: Mapping[str, Any] | None = None,
    *,
    layout: str = "halves",
) -> RotaryEmbedding:
    """Make what rotates queries and keys, scaled as the words say.

    Args:
        c: a complete config.
        head_dim: the width of a head, of which `partial_rotary_factor` is rotated.
        words: of `rope_words`; those of `c` if not given.
        layout: which numbers make a pair.
    """
    rope = dict(rope_words(c) if words is None else words)
    kind = one_of("rope_type", rope.pop("rope_type"), KINDS)
    part = rope.pop("partial_rotary_factor")
    width = head_dim if kind == "proportional" else int(head_dim * part)
    if width < 2 or width % 2:
        rule = f"must leave an even part of head_dim ({head_dim})"
        raise ValueError(f"partial_rotary_factor ({part}) {rule}")
    frequencies = rotary_frequencies(width, base=rope.pop("rope_theta"))
    trained = rope.pop("original_max_position_embeddings", c["max_position_embeddings"])
    factor = 1.0
    try:
        if kind == "linear":
            frequencies = scale_linear(frequencies, rope.pop("factor"))
        elif kind == "proportional":
            frequencies = keep_fastest(frequencies, part) / rope.pop("factor", 1.0)
        elif kind == "llama3":
            frequencies = scale_llama3(
                frequencies,
                rope.pop("factor"),
                trained_len=trained,
                low=rope.pop("low_freq_factor"),
                high=rope.pop("high_freq_factor"),
            )
        elif kind == "yarn":
            scale = rope.pop("factor")
            factor = attention_factor(scale, rope)
            frequencies = scale_yarn(
                frequencies,
                scale,
                trained_len=trained,
                low=rope.pop("beta_slow", None) or 1,
                high=rope.pop("beta_fast", None) or 32,
                truncate=rope.pop("truncate", True),
            )
    except KeyError as error:
        raise ValueError(f"rope_type ({kind!r}) needs {error.args[0]}") from error
    for name, value in rope.items():
        raise ValueError(f"rope_type ({kind!r}) has {name} ({value!r}), unknown here")
    return RotaryEmbedding(frequencies, factor=factor, layout=layout, head_dim=head_dim)


def long_rotary_of(c: Config, head_dim: int) -> nn.Module:
    """Make what rotates as LongRoPE does, if the config asks for it."""
    rope = rope_words(c)
    if rope["rope_type"] not in ("longrope", "su"):  # the second in old files
        return rotary_of(c, head_dim)
    trained = c["original_max_position_embeddings"]
    # What is said beside it comes first, as in Hugging Face's code.
    rope.pop("original_max_position_embeddings", None)
    scale = rope.pop("factor", None) or c["max_position_embeddings"] / trained
    factor = rope.pop("attention_factor", None) or longrope_factor(scale, trained)
    divisors = {name: rope.pop(name, None) for name in LONG}
    plain = rotary_of(c, head_dim, {**rope, "rope_type": "default"}).frequencies
    for name, given in divisors.items():
        if not isinstance(given, list) or len(given) != len(plain):
            raise ValueError(f"{name} ({given}) must be of {len(plain)} numbers")
    short, long = (
        RotaryEmbedding(
            plain / torch.tensor(given, dtype=plain.dtype, device="cpu"),
            factor=factor,
            layout="halves",
            head_dim=head_dim,
        )
        for given in divisors.values()
    )
    return LongRotaryEmbedding(short, long, trained)


def attention_factor(scale: float, rope: dict[str, Any]) -> float:
    """Take YaRN's factor out of the words: as it is, or of the two mscales."""
    given = rope.pop("attention_factor", None)
    above, below = rope.pop("mscale", None), rope.pop("mscale_all_dim", None)
    if given:
        return float(given)
    if above and below:
        return yarn_factor(scale, above) / yarn_factor(scale, below)
    return yarn_factor(scale)
