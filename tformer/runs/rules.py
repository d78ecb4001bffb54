"""Presets of the tasks, and what settings may be: each by itself, and together."""

import math
from collections.abc import Callable, Collection, Mapping
from types import UnionType
from typing import TYPE_CHECKING, NamedTuple, get_args

from tformer.files import Json
from tformer.models.families.custom import PARTS

if TYPE_CHECKING:
    from tformer.runs.settings import RunSettings

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


class Bound(NamedTuple):
    """What a number must be, in words, and whether one is."""

    words: str
    fits: Callable[[float], bool]


AT_LEAST_1 = Bound("at least 1", lambda x: x >= 1)
AT_LEAST_0 = Bound("at least 0", lambda x: x >= 0)
SEED = Bound("at least 0, and below 2^63", lambda x: 0 <= x < 2**63)
FRACTION = Bound("in [0, 1)", lambda x: 0 <= x < 1)
ABOVE_0 = Bound("above 0", lambda x: x > 0)
RATE = Bound("above 0 and finite", lambda x: 0 < x < math.inf)
DECAY = Bound("at least 0 and finite", lambda x: 0 <= x < math.inf)


def check_one_of(name: str, value: object, known: Collection[str]) -> None:
    """Raise a ValueError unless the value is one of those that are known."""
    if value not in known:
        raise ValueError(f"{name} ({value!r}) must be one of {', '.join(known)}")


def check_type(name: str, value: object, kind: type | UnionType) -> None:
    """Raise unless a value is of the type; a whole number is a float too."""
    wanted = kind | int if float in (kind, *get_args(kind)) else kind
    is_bool = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63 and name != "seed"
    if not isinstance(value, wanted) or is_bool or huge:
        given = list(value) if isinstance(value, tuple) else value
        named = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} ({given!r}) must be of type {named}")


def check_texts(name: str, values: tuple[str, ...]) -> None:
    """Raise unless this is a tuple of texts, which files can hold as UTF-8."""
    texts = isinstance(values, tuple) and all(isinstance(text, str) for text in values)
    if not texts:
        given = list(values) if isinstance(values, tuple) else values
        raise ValueError(f"{name} ({given!r}) must be a list of texts")
    for text in values:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} ({text!r}): a name must be UTF-8") from None


def checked_parts(parts: object) -> Json:
    """Hold parts to their table, and leave out those that are as in a GPT."""
    if not isinstance(parts, Mapping):
        raise ValueError(f"parts ({parts!r}) must be an object")
    kept = {}
    for name, value in parts.items():
        if name not in PARTS:
            raise ValueError(f"there is no part {name!r}")
        default, kind, _ = PARTS[name]
        if isinstance(kind, tuple):
            check_one_of(name, value, kind)
        elif value is not None or default is not None:
            check_type(name, value, kind)
        if value != default:
            kept[name] = float(value) if kind is float else value
    return kept


def check_together(s: "RunSettings") -> None:
    """Raise a ValueError unless the settings of a run go with each other."""
    counts = OWN_FILES.get(s.task, (0,))
    if len(s.files) not in counts:
        wanted = " or ".join(map(str, counts))
        given = len(s.files)
        raise ValueError(f"files: the task {s.task!r} reads {wanted}, not {given}")
    if (s.model == "transformer") == (s.task == "text"):
        of_text = "'gpt', 'causal-lm' or 'bert'"
        fitting = of_text if s.task == "text" else "'transformer'"
        raise ValueError(f"model ({s.model!r}) must be {fitting} for {s.task}")
    if s.parts and s.model != PARTED:
        name, value = next(iter(s.parts.items()))
        only = f"is for model '{PARTED}', which learns a text"
        raise ValueError(f"{name} ({value!r}) {only}")
    if s.schedule == "cosine" and s.warmup_steps >= s.steps:
        below = f"must be below steps ({s.steps})"
        raise ValueError(f"warmup_steps ({s.warmup_steps}) {below}")
    if s.schedule == "inverse-sqrt" and not s.warmup_steps:
        raise ValueError("warmup_steps (0) must be above 0 for 'inverse-sqrt'")
    if s.without and s.model != "transformer":
        raise ValueError(f"without ({s.without}) is for model 'transformer'")
    if s.batch_tokens is not None and s.task == "text":
        raise ValueError("batch_tokens is for pairs: a text has batch_size windows")
    if s.vocabulary == "bpe" and not s.files:
        raise ValueError("vocabulary 'bpe' is for own files")
