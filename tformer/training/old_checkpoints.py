"""Checkpoints of version 0.1: NAME.safetensors, and NAME.json in other words."""

from pathlib import Path

from tformer.files import SEAL, Json
from tformer.models.families import custom
from tformer.models.folder import OURS

GONE = ("architecture", "config", "format", "weights", SEAL)  # today's stand elsewhere
# The words of a GPT or a CausalLM of then, and what they are today.
RENAMED = {
    "num_kv_heads": "kv_heads",
    "activation": "feed_forward",
    "num_experts": "experts",
    "num_shared": "shared_experts",
}
# What no run could choose: another value than this cannot be loaded any more.
FIXED = {
    "base": 10_000.0,
    "local_base": None,
    "layout": "halves",
    "scaling": None,
    "scale": 1.0,
    "trained_len": None,
    "low": None,
    "high": None,
    "factor": None,
    "q_rank": None,
    "rotary_dim": None,
    "value_dim": None,
    "scores": "softmax",
    "renormalise": True,
    "balance_rate": 0.001,
    "scale_embedding": False,
}


def converted(path: Path, values: Json) -> Json:
    """Turn an old manifest into today's config.json, its rest under "tformer"."""
    try:
        kind, config = values["architecture"], dict(values["config"])
        manifest = {name: x for name, x in values.items() if name not in GONE}
        if kind in ("Transformer", "BERT"):
            return {"model_type": kind.lower(), **config, OURS: manifest}
        if kind not in ("GPT", "CausalLM"):
            raise ValueError(f"{path}: architecture ({kind!r}) is unknown")
        flat = flatten(config)
        for name, fixed in FIXED.items():
            if (value := flat.pop(name, fixed)) != fixed:
                what = f"{name} ({value!r}) of an older version is gone"
                raise ValueError(f"{path}: {what}")
        today = {RENAMED.get(name, name): x for name, x in flat.items()}
        return {**custom.DEFAULTS, **today, OURS: manifest}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no manifest of a checkpoint: {error}") from error


def flatten(config: Json) -> Json:
    """Lay parts that were nested beside the sizes; a part that is None is left out."""
    flat: Json = {}
    for name, value in config.items():
        nested = name in ("parts", "rotary", "latent", "experts")
        flat |= flatten(value or {}) if nested else {name: value}
    return flat
