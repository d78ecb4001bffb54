"""What a run is asked to do: each setting once, with its default and its meaning."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar, get_type_hints

from tformer.checks import check_one_of
from tformer.files import Json
from tformer.models.families.custom import PARTS, check_config
from tformer.runs.rules import ABLATIONS, BOUNDS, OWN_FILES, PARTED, PRESETS, check_type
from tformer.training.precision import DTYPES
from tformer.training.schedule import cosine_schedule, inverse_sqrt_schedule

T = TypeVar("T")


def _setting(
    panel: str, default: T, help: str, *, bound: str = "", among: tuple[str, ...] = ()
) -> T:
    """Declare a setting: the command line makes an option of it, in its panel."""
    if type(default) in (int, type(None)):
        bound = bound or "at least 1"
    told = {"panel": panel, "help": help, "bound": bound, "among": among}
    return field(default=default, metadata=told)


_model = partial(_setting, "Model")
_data = partial(_setting, "Data")
_training = partial(_setting, "Training")
_watching = partial(_setting, "Watching")


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What a run is asked to do. `RunSettings.of(task, …)` begins with its preset.

    Beside each setting stands what it means, as `tformer train --help` shows it.

    Raises:
        ValueError: a value is of another type, out of its range, or does not go with
            the others.
    """

    task: str  # of `tformer.tasks`, or "text" or "pairs", which read own files
    files: tuple[str, ...] = ()
    model: str = _model(
        "transformer",
        "For pairs transformer; for text gpt, bert or causal-lm, which a GPT becomes "
        "when one of its parts is named.",
        among=("transformer", "gpt", "bert", PARTED),
    )
    vocabulary: str = _data(
        "characters", "Of own files: characters or bpe.", among=("characters", "bpe")
    )
    vocab_size: int = _data(4000, "How many tokens BPE may have.")
    d_model: int = _model(64, "Width.")
    num_heads: int = _model(4, "Heads.")
    num_layers: int = _model(2, "Layers; of an encoder, and as many of its decoder.")
    d_ff: int | None = _model(
        None, "Inner width of the feed-forward networks: if not given 4 times d-model."
    )
    max_len: int = _model(256, "Longest line in tokens, or context of a text's model.")
    dropout: float = _model(0.0, "Probability.", bound="in [0, 1)")
    bias: bool = _model(True, "Give linear layers and norms a bias.")
    norm_first: bool = _model(
        True, "Pre-norm in a Transformer; a GPT is always so, and a BERT never."
    )
    parts: Mapping[str, Any] = field(default_factory=dict, hash=False)  # of PARTS
    without: tuple[str, ...] = _model(
        (), f"What a Transformer is trained without: {', '.join(ABLATIONS)}."
    )
    examples: int = _data(50_000, "Pairs of a task to draw for the training.")
    steps: int = _training(2000, "Of the training.")
    batch_size: int = _data(128, "Rows of a batch.")
    batch_tokens: int | None = _data(
        None, "In its place tokens of a batch of pairs, padding included."
    )
    accumulate: int = _training(1, "Compute each batch in so many parts.")
    optimizer: str = _training(
        "adamw",
        "adamw; or muon for the matrices inside the layers, and AdamW for the rest.",
        among=("adamw", "muon"),
    )
    learning_rate: float = _training(
        3e-3,
        "The highest of cosine; a factor of inverse-sqrt.",
        bound="above 0 and finite",
    )
    schedule: str = _training(
        "cosine",
        "cosine or inverse-sqrt (the paper's).",
        among=("cosine", "inverse-sqrt"),
    )
    warmup_steps: int = _training(
        200, "While which the learning rate rises.", bound="at least 0"
    )
    weight_decay: float = _training(0.01, "Of matrices.", bound="at least 0 and finite")
    beta2: float = _training(
        0.98,
        "How much of the gradients' mean square a step of AdamW keeps.",
        bound="in [0, 1)",
    )
    clip_norm: float = _training(
        1.0, "Longer gradients are shortened to it.", bound="above 0"
    )
    smoothing: float = _training(0.0, "Of the labels.", bound="in [0, 1)")
    precision: str = _training("fp32", f"{', '.join(DTYPES)}.", among=tuple(DTYPES))
    compile: bool = _training(False, "Let torch.compile make kernels for the model.")
    seed: int = _training(
        0, "Of weights, data, dropout.", bound="at least 0, and below 2^63"
    )
    evaluate_every: int = _watching(250, "Steps between looks at the validation data.")
    evaluate_examples: int = _watching(500, "Pairs that are decoded at such a look.")
    save_every: int = _watching(500, "Steps between checkpoints.")
    keep: int = _watching(2, "How many checkpoints to keep.")
    test_examples: int = _watching(2000, "Pairs that are decoded at the end.")

    @classmethod
    def of(cls, task: str, **changes: Any) -> "RunSettings":
        """Begin with the preset of a task, and change what is named, parts as well.

        If the number of steps is changed and the warm-up is not, the warm-up takes at
        most a fifth of them. If the schedule is "inverse-sqrt" and no factor is given,
        it is 1.
        """
        check_one_of("task", task, PRESETS)
        values = {"warmup_steps": cls.warmup_steps, **PRESETS[task], **changes}
        if PARTS.keys() & changes.keys() and values.get("model") == "gpt":
            values["model"] = changes.get("model", PARTED)
        if "warmup_steps" not in changes:  # a shorter training warms up more shortly
            steps = values.get("steps", cls.steps)
            values["warmup_steps"] = min(values["warmup_steps"], max(steps, 0) // 5)
        if values.get("schedule") == "inverse-sqrt":
            values.setdefault("learning_rate", 1.0)
        return cls.from_json({"task": task, **values})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSettings":
        """Read what `dataclasses.asdict` and JSON have made of settings.

        Parts may lie beside the other settings, as in older versions: None is none. A
        ValueError comes as of the class; or the task is missing, or a setting unknown.
        """
        check_type("settings", values, Mapping)
        given: Json = {"task": None, **values}
        beside = {name: given.pop(name) for name in PARTS if name in given}
        if unknown := [name for name in given if name not in cls.__annotations__]:
            raise ValueError(f"there is no setting {unknown[0]!r}")
        parts = given.get("parts", {})
        check_type("parts", parts, dict)
        given["parts"] = parts | {n: x for n, x in beside.items() if x is not None}
        for name, value in given.items():
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)

    def flat(self) -> Json:
        """Return all settings by name; of a model with parts, these among them."""
        flat: Json = {}
        for name, value in dataclasses.asdict(self).items():
            if name != "parts":
                flat[name] = value
            elif self.model == PARTED:
                flat |= {each: part.default for each, part in PARTS.items()} | value
        return flat

    def sizes(self, *, vocab_size: int, pad_id: int | None) -> Json:
        """Return the sizes of the model, by the names of its config, and its parts."""
        names = "d_model num_heads num_layers d_ff max_len dropout bias"
        own = {name: getattr(self, name) for name in names.split()}
        if self.model != PARTED and self.d_ff is None:
            own["d_ff"] = 4 * self.d_model
        return {"vocab_size": vocab_size, "pad_id": pad_id, **own, **self.parts}

    def rate_at(self, step: int) -> float:
        """Compute the learning rate of a step; the first is 1."""
        peak, warmup = self.learning_rate, self.warmup_steps
        if self.schedule == "cosine":
            return cosine_schedule(step, self.steps, peak=peak, warmup_steps=warmup)
        return peak * inverse_sqrt_schedule(step, self.d_model, warmup_steps=warmup)

    def __post_init__(self) -> None:
        check_one_of("task", self.task, PRESETS)
        kinds = get_type_hints(RunSettings)
        for setting in fields(self):
            name, about = setting.name, setting.metadata
            value, kind = getattr(self, name), kinds[name]
            if kind == tuple[str, ...]:
                if not isinstance(value, tuple) or {*map(type, value)} - {str}:
                    raise ValueError(f"{name} ({value!r}) must be a list of texts")
            elif about and about["among"]:
                check_one_of(name, value, about["among"])
            elif about:
                check_type(name, value, kind)
                bound = about["bound"]
                if bound and value is not None and not BOUNDS[bound](value):
                    raise ValueError(f"{name} ({value}) must be {bound}")
        for name in self.without:
            check_one_of("without", name, ABLATIONS)
        self._check_parts()
        self._check_together()
        self.rate_at(1)  # which checks the warm-up
        if self.model == PARTED:
            check_config(self.sizes(vocab_size=1, pad_id=None))

    def _check_parts(self) -> None:
        """Hold the parts to their table, and keep those that are not as in a GPT."""
        kept = {}
        for name, value in self.parts.items():
            if name not in PARTS:
                raise ValueError(f"there is no part {name!r}")
            kind = PARTS[name].kind
            if value == PARTS[name].default:
                continue
            if isinstance(kind, tuple):
                check_one_of(name, value, kind)
            else:
                check_type(name, value, kind)
            if self.model != PARTED:
                only = f"is for model {PARTED!r}, which learns a text"
                raise ValueError(f"{name} ({value!r}) {only}")
            kept[name] = value
        object.__setattr__(self, "parts", kept)

    def _check_together(self) -> None:
        if len(self.files) not in (counts := OWN_FILES.get(self.task, (0,))):
            wanted = f"reads {' or '.join(map(str, counts))}, not {len(self.files)}"
            raise ValueError(f"files: the task {self.task!r} {wanted}")
        if (self.model == "transformer") == (self.task == "text"):
            wanted = f"gpt, {PARTED} or bert" if self.task == "text" else "transformer"
            raise ValueError(f"model ({self.model!r}) must be {wanted} for {self.task}")
        for name, fits, only in (
            ("examples", self.task not in OWN_FILES, "tasks that draw them"),
            ("vocabulary", self.task in OWN_FILES, "own files"),
            ("vocab_size", self.vocabulary == "bpe", "vocabulary 'bpe'"),
            ("batch_tokens", self.task != "text", "pairs: a text has windows"),
            ("without", self.task != "text", "model 'transformer'"),
        ):
            value = getattr(self, name)
            if not fits and value != getattr(RunSettings, name):
                raise ValueError(f"{name} ({value!r}) is for {only}")
