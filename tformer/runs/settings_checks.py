"""What the settings of a run may be: each by itself, and together."""

import math
from typing import Any, get_args

from tformer.checks import check_at_least_0, check_positive, check_probability
from tformer.runs import parts
from tformer.runs.ablations import ABLATIONS
from tformer.runs.presets import OWN_FILES, PRESETS
from tformer.training.precision import DTYPES

MODELS = ("transformer", "gpt", "bert", parts.MODEL)
VOCABULARIES = ("characters", "bpe")
OPTIMIZERS = ("adamw", "muon")
SCHEDULES = ("cosine", "inverse-sqrt")
_POSITIVE = (
    *("vocab_size", "d_model", "num_heads", "num_layers", "max_len", "examples"),
    *("steps", "batch_size", "accumulate", "evaluate_every", "evaluate_examples"),
    *("save_every", "keep", "test_examples"),
)
_POSITIVE_OR_NONE = ("batch_tokens", "d_ff", "kv_heads", "kv_rank")
_FLAGS = ("bias", "norm_first", "qk_norm", "sinks", "compile")


def check_settings(s: Any) -> None:
    """Raise unless each setting is in its range, and goes with the others.

    Raises:
        TypeError: a size is not an int, or a flag not a bool.
        ValueError: a value is out of its range, or does not go with the others.
    """
    check_one_of("task", s.task, PRESETS)
    check_one_of("model", s.model, MODELS)
    check_one_of("vocabulary", s.vocabulary, VOCABULARIES)
    check_one_of("optimizer", s.optimizer, OPTIMIZERS)
    check_one_of("schedule", s.schedule, SCHEDULES)
    check_one_of("precision", s.precision, DTYPES)
    for name in s.without:
        check_one_of("without", name, ABLATIONS)
    check_positive(**{name: getattr(s, name) for name in _POSITIVE})
    for name in _FLAGS:
        if not isinstance(getattr(s, name), bool):
            raise TypeError(f"{name} ({getattr(s, name)!r}) must be a bool")
    for name in _POSITIVE_OR_NONE:
        if getattr(s, name) is not None:
            check_positive(**{name: getattr(s, name)})
    check_at_least_0(seed=s.seed, warmup_steps=s.warmup_steps)
    if s.seed >= 2**63:
        raise ValueError(f"seed ({s.seed}) must be below 2^63")
    check_probability(dropout=s.dropout, smoothing=s.smoothing, beta2=s.beta2)
    if not s.clip_norm > 0:
        raise ValueError(f"clip_norm ({s.clip_norm}) must be above 0")
    if not 0 < s.learning_rate < math.inf:
        raise ValueError(
            f"learning_rate ({s.learning_rate}) must be above 0 and finite"
        )
    if not 0 <= s.weight_decay < math.inf:
        raise ValueError(
            f"weight_decay ({s.weight_decay}) must be at least 0 and finite"
        )
    _check_together(s)


def _check_together(s: Any) -> None:
    counts = OWN_FILES.get(s.task, (0,))
    if len(s.files) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ValueError(
            f"files: the task {s.task!r} reads {wanted}, not {len(s.files)}"
        )
    if (s.model == "transformer") == (s.task == "text"):
        fitting = "'transformer'"
        if s.task == "text":
            fitting = "'gpt', 'causal-lm' or 'bert'"
        raise ValueError(f"model ({s.model!r}) must be {fitting} for {s.task}")
    parts.check_parts(s)
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


def check_one_of(name: str, value: str, known: object) -> None:
    """Raise a ValueError unless the value is one of those that are known."""
    if value not in known:  # type: ignore[operator]
        raise ValueError(
            f"{name} ({value!r}) must be one of {', '.join(known)}"  # type: ignore[arg-type]
        )


def check_type(name: str, value: object, kind: Any) -> None:
    """Raise unless JSON gave a value of the type; a whole number is a float too."""
    wanted = kind | int if float in (kind, *get_args(kind)) else kind
    is_bool = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63
    if not isinstance(value, wanted) or is_bool or huge:
        named = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} ({value!r}) must be of type {named}")
