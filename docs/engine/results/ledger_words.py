"""What the parts of the ledger are called."""

from collections.abc import Mapping
from typing import Any

from tformer.runs import parts

WORDS: dict[str, dict[Any, str]] = {
    "positions": {
        "learned": "learned positions",
        "rotary": "rotary positions",
        "sinusoidal": "sinusoids",
        "alibi": "ALiBi",
        "t5": "T5's relative bias",
        "none": "no positions",
    },
    "norm": {"layer": "LayerNorm", "rms": "RMSNorm", "rms_plus_one": "RMSNorm, 1 + w"},
    "placement": {"pre": "pre-norm", "sandwich": "sandwich norm", "post": "post-norm"},
    "feed_forward": {
        "relu": "ReLU",
        "gelu": "GELU",
        "gelu_tanh": "GELU by tanh",
        "relu2": "ReLU²",
        "swiglu": "SwiGLU",
        "geglu": "GeGLU",
        "reglu": "ReGLU",
        "glu": "GLU",
    },
    "qk_norm": {True: "QK-norm"},
    "sinks": {True: "sinks"},
    "optimizer": {"adamw": "AdamW", "muon": "Muon"},
}
# A setting with a number; those of one part in the order in which they are told.
NUMBERED = {
    "kv_heads": "{} key/value heads",
    "window": "window of {}",
    "global_every": "1 in {} global",
    "softcap": "scores capped at {:g}",
    "logit_cap": "logits capped at {:g}",
    "experts": "{} experts",
    "top_k": "{} a token",
    "shared_experts": "{} shared",
    "d_ff": "of width {}",
    "kv_rank": "latents of {} (MLA)",
}


def name_of(base: Mapping[str, Any], changed: Mapping[str, Any]) -> tuple[str, str]:
    """Say what was put in, and what of the base it stands in for, if anything."""
    if len(_differing(base, changed)) > 1 and "positions" in _differing(base, changed):
        return "the block of today", "all three"
    unset = {**parts.OF_GPT, "optimizer": "adamw"}
    put, instead = [], []
    for name in _differing(base, changed):
        now, was = changed.get(name, unset.get(name)), base.get(name, unset.get(name))
        put.append(_word(name, now))
        if was is not None and was is not False:
            instead.append(_word(name, was))
    return ", ".join(put), ", ".join(instead)


def _differing(base: Mapping[str, Any], changed: Mapping[str, Any]) -> list[str]:
    order = [*WORDS, *NUMBERED]
    names = base.keys() | changed.keys()
    found = [name for name in names if base.get(name) != changed.get(name)]
    return sorted(found, key=lambda n: order.index(n) if n in order else len(order))


def _word(name: str, value: Any) -> str:
    if name in NUMBERED:
        text = NUMBERED[name].format(value)
        return text[:-1] if name == "kv_heads" and value == 1 else text
    return WORDS.get(name, {}).get(value, f"{name.replace('_', '-')} {value}")
