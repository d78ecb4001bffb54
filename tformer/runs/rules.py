"""Presets of the tasks, and what a setting may be."""

import math
from collections.abc import Callable
from types import UnionType
from typing import get_args

from tformer.files import Json

ABLATIONS = ("mask", "scale", "positions")
PARTED = "causal-lm"  # the model of a run that names parts
# How many files each of these tasks reads. Of pairs two, which are dealt out to the
# splits, or six: two to train on, two for validation, two for the test.
OWN_FILES = {"text": (1,), "pairs": (2, 6)}

_DATES = {"steps": 4000, "examples": 200_000, "warmup_steps": 400}
# What differs from the defaults of RunSettings. Each ends well on a CPU in minutes.
PRESETS: dict[str, Json] = {
    "copy": {"steps": 1500},
    "reverse": {"steps": 3000},
    "sort": {"steps": 2000},
    "addition": {"steps": 3000, "examples": 200_000},
    "number-words": {"steps": 6000, "examples": 300_000},
    "dates": _DATES,
    "dates-new-locales": _DATES,
    "dates-as-typed": _DATES | {"examples": 300_000},
    "text": {
        "model": "gpt",
        "d_model": 128,
        "num_layers": 4,
        "max_len": 64,
        "batch_size": 12,
        "steps": 2000,
        "warmup_steps": 100,
        "weight_decay": 0.1,
        "beta2": 0.99,
        "bias": False,
    },
    "pairs": {"d_model": 256, "num_heads": 8, "num_layers": 3, "dropout": 0.1},
}

# What a number may be.
BOUNDS: dict[str, Callable[[float], bool]] = {
    "at least 1": lambda x: x >= 1,
    "at least 0": lambda x: x >= 0,
    "at least 0, and below 2^63": lambda x: 0 <= x < 2**63,
    "at least 0 and finite": lambda x: 0 <= x < math.inf,
    "above 0": lambda x: x > 0,
    "above 0 and finite": lambda x: 0 < x < math.inf,
    "in [0, 1)": lambda x: 0 <= x < 1,
}


def check_type(name: str, value: object, kind: type | UnionType) -> None:
    """Raise unless a value is of the type; a whole number is a float too."""
    wanted = kind | int if float in (kind, *get_args(kind)) else kind
    is_bool = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63 and name != "seed"
    if not isinstance(value, wanted) or is_bool or huge:
        named = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} ({value!r}) must be of type {named}")
