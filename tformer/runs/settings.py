"""What a run is asked to do: the task, the model's sizes, and how to train it."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from tformer.checks import check_at_least_0, check_positive, check_probability
from tformer.runs import parts
from tformer.runs.ablations import ABLATIONS
from tformer.training.precision import DTYPES

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
# How many files each of these tasks reads. Of pairs two, which are dealt out to the
# splits, or six: two to train on, two for validation, two for the test.
OWN_FILES = {"text": (1,), "pairs": (2, 6)}
MODELS = ("transformer", "gpt", "bert", parts.MODEL)
VOCABULARIES = ("characters", "bpe")
SCHEDULES = ("cosine", "inverse-sqrt")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run is asked to do. `RunSettings.of(task, …)` begins with its preset.

    Args:
        task: a task of `tformer.tasks`, or "text" (a text file for a language model),
            or "pairs" (two files, of which line n of one is line n of the other; or
            six, two of training, two of validation and two of test).
        files: of "text" and "pairs", as they were named.
        model: "transformer" for pairs; "gpt" or "bert" for text, or "causal-lm", which
            it becomes when a part is named: a setting from "positions" to "logit_cap".
        vocabulary: "characters" or "bpe" for own files.
        vocab_size: how many tokens BPE may have.
        d_model: width.
        num_heads: heads.
        num_layers: layers; of the encoder, and as many of the decoder.
        d_ff: inner width of the feed-forward networks; 4 · d_model if None, with a
            gate 8/3 · d_model.
        max_len: the longest line in tokens, or the context of a language model.
        dropout: probability.
        bias: give linear layers and norms a bias.
        norm_first: pre-norm in a Transformer; GPT is always so, and BERT never.
        positions: of causal-lm: "rotary", "learned", "sinusoidal", "alibi", "t5" or
            "none".
        norm: of causal-lm: "layer", "rms", or "rms_plus_one" (Gemma's).
        placement: of the norms of causal-lm: "pre", "sandwich" or "post".
        feed_forward: of causal-lm: "relu", "gelu", "gelu_tanh" or "relu2"; or, with a
            gate, "swiglu", "geglu", "geglu_tanh", "reglu" or "glu".
        kv_heads: key/value heads; divides num_heads.
        qk_norm: normalise each query and each key.
        window: how many tokens a query sees, itself included.
        global_every: of so many layers the last sees all tokens, and no window.
        sinks: a learned logit for each head, which joins the softmax.
        softcap: bound each score of attention, smoothly.
        logit_cap: bound each logit, smoothly.
        without: what the model is trained without: "mask", "scale", "positions".
        examples: how many pairs of a task to draw for the training.
        steps: of the training.
        batch_size: rows of a batch.
        batch_tokens: in its place, tokens of a batch of pairs, padding included.
        accumulate: compute each batch in so many parts.
        learning_rate: the highest of "cosine"; a factor of "inverse-sqrt", whose
            formula has none: 1 if it is not given.
        schedule: "cosine" or "inverse-sqrt" (the paper's).
        warmup_steps: while which the learning rate rises.
        weight_decay: of matrices.
        beta2: how much of the gradients' mean square each step keeps.
        clip_norm: longer gradients are shortened to it.
        smoothing: of the labels.
        precision: "fp32", "bf16" or "fp16".
        compile: let torch.compile make kernels for the model.
        seed: of weights, data and dropout.
        evaluate_every: steps between looks at the validation data.
        evaluate_examples: how many pairs are decoded at such a look.
        save_every: steps between checkpoints.
        keep: how many checkpoints to keep.
        test_examples: pairs decoded at the end.

    Raises:
        TypeError: a size is not an int, or a flag not a bool.
        ValueError: a value is out of its range, or does not go with the others.
    """

    task: str
    files: tuple[str, ...] = ()
    model: str = "transformer"
    vocabulary: str = "characters"
    vocab_size: int = 4000
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    d_ff: int | None = None
    max_len: int = 256
    dropout: float = 0.0
    bias: bool = True
    norm_first: bool = True
    positions: str | None = None
    norm: str | None = None
    placement: str | None = None
    feed_forward: str | None = None
    kv_heads: int | None = None
    qk_norm: bool = False
    window: int | None = None
    global_every: int | None = None
    sinks: bool = False
    softcap: float | None = None
    logit_cap: float | None = None
    without: tuple[str, ...] = ()
    examples: int = 50_000
    steps: int = 2000
    batch_size: int = 128
    batch_tokens: int | None = None
    accumulate: int = 1
    learning_rate: float = 3e-3
    schedule: str = "cosine"
    warmup_steps: int = 200
    weight_decay: float = 0.01
    beta2: float = 0.98
    clip_norm: float = 1.0
    smoothing: float = 0.0
    precision: str = "fp32"
    compile: bool = False
    seed: int = 0
    evaluate_every: int = 250
    evaluate_examples: int = 500
    save_every: int = 500
    keep: int = 2
    test_examples: int = 2000

    @classmethod
    def of(cls, task: str, **changes: Any) -> "RunSettings":
        """Begin with the preset of a task, and change what is named.

        If the number of steps is changed and the warm-up is not, the warm-up takes at
        most a fifth of them. If the schedule is "inverse-sqrt" and no factor is given,
        it is 1.

        Raises:
            ValueError: as the class; or a change would do nothing.
        """
        _one_of("task", task, PRESETS)
        unknown = changes.keys() - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"there is no setting {sorted(unknown)[0]!r}")
        values = {"warmup_steps": cls.warmup_steps, **PRESETS[task], **changes}
        if "warmup_steps" not in changes:  # a shorter training warms up more shortly
            steps = values.get("steps", cls.steps)
            values["warmup_steps"] = min(values["warmup_steps"], max(steps, 0) // 5)
        if values.get("schedule") == "inverse-sqrt":
            values.setdefault("learning_rate", 1.0)
        if "vocab_size" in changes and values.get("vocabulary") != "bpe":
            raise ValueError("vocab_size is for vocabulary 'bpe'")
        if "examples" in changes and task in OWN_FILES:
            raise ValueError(
                "examples is for tasks that draw them: files have their own"
            )
        return cls(task=task, **parts.with_parts(values, set(changes)))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSettings":
        """Read what `dataclasses.asdict` and JSON have made of settings.

        Raises:
            KeyError, TypeError: a setting is missing, or unknown.
            ValueError: a setting is of another type, or as the class.
        """
        tuples = {name: values[name] for name in ("files", "without")}
        for name, texts in tuples.items():
            if not isinstance(texts, list | tuple) or not all(
                isinstance(text, str) for text in texts
            ):
                raise ValueError(f"{name} ({texts!r}) must be a list of texts")
        kinds = get_type_hints(cls)
        for name in values.keys() & (kinds.keys() - tuples.keys()):
            _check_type(name, values[name], kinds[name])
        return cls(**{**values, **{name: tuple(x) for name, x in tuples.items()}})

    def __post_init__(self) -> None:
        _one_of("task", self.task, PRESETS)
        _one_of("model", self.model, MODELS)
        _one_of("vocabulary", self.vocabulary, VOCABULARIES)
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("precision", self.precision, DTYPES)
        for name in self.without:
            _one_of("without", name, ABLATIONS)
        check_positive(**{name: getattr(self, name) for name in _POSITIVE})
        for name in ("bias", "norm_first", "qk_norm", "sinks", "compile"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} ({getattr(self, name)!r}) must be a bool")
        for name in ("batch_tokens", "d_ff", "kv_heads"):
            if getattr(self, name) is not None:
                check_positive(**{name: getattr(self, name)})
        check_at_least_0(seed=self.seed, warmup_steps=self.warmup_steps)
        if self.seed >= 2**63:
            raise ValueError(f"seed ({self.seed}) must be below 2^63")
        check_probability(
            dropout=self.dropout, smoothing=self.smoothing, beta2=self.beta2
        )
        if not self.clip_norm > 0:
            raise ValueError(f"clip_norm ({self.clip_norm}) must be above 0")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(
                f"learning_rate ({self.learning_rate}) must be above 0 and finite"
            )
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(
                f"weight_decay ({self.weight_decay}) must be at least 0 and finite"
            )
        self._check_together()

    def _check_together(self) -> None:
        counts = OWN_FILES.get(self.task, (0,))
        if len(self.files) not in counts:
            wanted = " or ".join(map(str, counts))
            raise ValueError(
                f"files: the task {self.task!r} reads {wanted}, not {len(self.files)}"
            )
        if (self.model == "transformer") == (self.task == "text"):
            fitting = "'transformer'"
            if self.task == "text":
                fitting = "'gpt', 'causal-lm' or 'bert'"
            raise ValueError(
                f"model ({self.model!r}) must be {fitting} for {self.task}"
            )
        parts.check_parts(self)
        if self.schedule == "cosine" and self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) must be below steps ({self.steps})"
            )
        if self.schedule == "inverse-sqrt" and not self.warmup_steps:
            raise ValueError("warmup_steps (0) must be above 0 for 'inverse-sqrt'")
        if self.without and self.model != "transformer":
            raise ValueError(f"without ({self.without}) is for model 'transformer'")
        if self.batch_tokens is not None and self.task == "text":
            raise ValueError("batch_tokens is for pairs: a text has batch_size windows")
        if self.vocabulary == "bpe" and not self.files:
            raise ValueError("vocabulary 'bpe' is for own files")


_POSITIVE = (
    *("vocab_size", "d_model", "num_heads", "num_layers", "max_len", "examples"),
    *("steps", "batch_size", "accumulate", "evaluate_every", "evaluate_examples"),
    *("save_every", "keep", "test_examples"),
)


def _one_of(name: str, value: str, known: object) -> None:
    if value not in known:  # type: ignore[operator]
        raise ValueError(
            f"{name} ({value!r}) must be one of {', '.join(known)}"  # type: ignore[arg-type]
        )


def _check_type(name: str, value: object, kind: Any) -> None:
    """Raise unless JSON gave a value of the type; a whole number is a float too."""
    wanted = kind | int if float in (kind, *get_args(kind)) else kind
    is_bool = isinstance(value, bool) and kind is not bool
    huge = isinstance(value, int) and abs(value) >= 2**63
    if not isinstance(value, wanted) or is_bool or huge:
        named = getattr(kind, "__name__", kind)
        raise ValueError(f"{name} ({value!r}) must be of type {named}")
