"""Presets of the tasks, and what settings may be: each by itself, and together."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, get_args

from tformer.models.families.custom import PARTS, check_config

ABLATIONS = ("mask", "scale", "positions")
PARTED = "causal-lm"  # the model of a run that names parts
# How many files each of these tasks reads. Of pairs two, which are dealt out to the
# splits, or six: two to train on, two for validation, two for the test.
OWN_FILES = {"text": (1,), "pairs": (2, 6)}

_DATES = {"steps": 4000, "examples": 200_000, "warmup_steps": 400}
# What differs from the defaults of RunSettings. Each ends well on a CPU in minutes.
PRESETS: dict[str, dict[str, Any]] = {
    "copy": {"steps": 1500},
    "reverse": {"steps": 3000},
    "sort": {"steps": 2000},
    "addition": {"steps": 3000, "examples": 200_000},
    "number-words": {"steps": 6000, "examples": 300_000},
    "dates": _DATES,
    "dates-new-locales": _DATES,
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


def _bound(words: str, fits: Callable[[float], bool]) -> Callable[..., None]:
    def check(**values: float) -> None:
        for name, value in values.items():
            if not fits(value):
                raise ValueError(f"{name} ({value}) must be {words}")

    return check


ABOVE_0 = _bound("above 0", lambda x: x > 0)
RATE = _bound("above 0 and finite", lambda x: 0 < x < math.inf)
DECAY = _bound("at least 0 and finite", lambda x: 0 <= x < math.inf)
ANYTHING = _bound("anything", lambda _: True)


def check_setting(setting: "dataclasses.Field[Any]", value: Any, kind: Any) -> None:
    """Hold one setting to its type, its range, and its names."""
    name, told = setting.name, setting.metadata
    if told["among"]:
        check_one_of(name, value, told["among"])
        return
    check_type(name, value, kind)
    if value is not None:
        told["check"](**{name: value})


def checked_parts(parts: Any) -> dict[str, Any]:
    """Hold parts to their table, and leave out those that are as in a GPT."""
    if not isinstance(parts, Mapping):
        raise ValueError(f"parts ({parts!r}) must be an object")
    kept = {}
    for name, value in parts.items():
        if name not in PARTS:
            raise ValueError(f"there is no part {name!r}")
        part = PARTS[name]
        if isinstance(part.kind, tuple):
            check_type(name, value, str)
            check_one_of(name, value, part.kind)
        elif value is not None or part.default is not None:
            check_type(name, value, part.kind)
        if value != part.default:
            kept[name] = float(value) if part.kind is float else value
    return kept


def check_together(s: Any) -> None:
    """Raise a ValueError unless the settings of a run go with each other."""
    counts = OWN_FILES.get(s.task, (0,))
    if len(s.files) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ValueError(
            f"files: the task {s.task!r} reads {wanted}, not {len(s.files)}"
        )
    if (s.model == "transformer") == (s.task == "text"):
        of_text = "'gpt', 'causal-lm' or 'bert'"
        fitting = of_text if s.task == "text" else "'transformer'"
        raise ValueError(f"model ({s.model!r}) must be {fitting} for {s.task}")
    for name, value in s.parts.items():
        if s.model != PARTED:
            raise ValueError(
                f"{name} ({value!r}) is for model '{PARTED}', which learns a text"
            )
    if s.model == PARTED:
        check_config(s.sizes(vocab_size=1, pad_id=None))
    if s.schedule == "cosine" and s.warmup_steps >= s.steps:
        raise ValueError(
            f"warmup_steps ({s.warmup_steps}) must be below steps ({s.steps})"
        )
    if s.schedule == "inverse-sqrt" and not s.warmup_steps:
        raise ValueError("warmup_steps (0) must be above 0 for 'inverse-sqrt'")
    if s.without and s.model != "transformer":
        raise ValueError(f"without ({s.without}) is for model 'transformer'")
    if s.batch_tokens is not None and s.task == "text":
        raise ValueError("batch_tokens is for pairs: a text has batch_size windows")
    if s.vocabulary == "bpe" and not s.files:
        raise ValueError("vocabulary 'bpe' is for own files")


def check_one_of(name: str, value: Any, known: Any) -> None:
    """Raise a ValueError unless the value is one of those that are known."""
    if value not in known:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(known)}")


def check_type(name: str, value: object, kind: Any) -> None:
    """Raise unless a value is of the type; a whole number is a float too."""
    texts = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
    if kind == tuple[str, ...] and not texts:
        given = list(value) if isinstance(value, tuple) else value
        raise ValueError(f"{name} ({given!r}) must be a list of texts")
    if kind == tuple[str, ...]:
        return
    wanted = kind | int if float in (kind, *get_args(kind)) else kind
    is_bool = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63
    if not isinstance(value, wanted) or is_bool or (huge and name != "seed"):
        named = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} ({value!r}) must be of type {named}")
