"""What a run is asked to do: each setting once, with its default and its meaning."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_type_hints

from tformer.checks import check_at_least_0, check_positive, check_probability
from tformer.models.families.custom import PARTS
from tformer.runs.rules import (
    ABLATIONS,
    ABOVE_0,
    ANYTHING,
    DECAY,
    OWN_FILES,
    PARTED,
    PRESETS,
    RATE,
    check_one_of,
    check_setting,
    check_together,
    check_type,
    checked_parts,
)
from tformer.training.precision import DTYPES


def _setting(
    panel: str,
    default: Any,
    help: str,
    *,
    check: Callable[..., None] | None = None,
    among: tuple[str, ...] = (),
) -> Any:
    """Declare a setting: the command line makes an option of it, in its panel."""
    if check is None:
        check = check_positive if type(default) in (int, type(None)) else ANYTHING
    told = {"panel": panel, "help": help, "check": check, "among": among}
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
    dropout: float = _model(0.0, "Probability.", check=check_probability)
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
        3e-3, "The highest of cosine; a factor of inverse-sqrt.", check=RATE
    )
    schedule: str = _training(
        "cosine",
        "cosine or inverse-sqrt (the paper's).",
        among=("cosine", "inverse-sqrt"),
    )
    warmup_steps: int = _training(
        200, "While which the learning rate rises.", check=check_at_least_0
    )
    weight_decay: float = _training(0.01, "Of matrices.", check=DECAY)
    beta2: float = _training(
        0.98,
        "How much of the gradients' mean square a step of AdamW keeps.",
        check=check_probability,
    )
    clip_norm: float = _training(
        1.0, "Longer gradients are shortened to it.", check=ABOVE_0
    )
    smoothing: float = _training(0.0, "Of the labels.", check=check_probability)
    precision: str = _training("fp32", f"{', '.join(DTYPES)}.", among=tuple(DTYPES))
    compile: bool = _training(False, "Let torch.compile make kernels for the model.")
    seed: int = _training(0, "Of weights, data, dropout.", check=check_at_least_0)
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

        Raises:
            ValueError: as the class; or a change would do nothing.
        """
        check_one_of("task", task, PRESETS)
        if unknown := changes.keys() - _NAMES - PARTS.keys():
            raise ValueError(f"there is no setting {min(unknown)!r}")
        values = {"warmup_steps": cls.warmup_steps, **PRESETS[task], **changes}
        named = {name: values.pop(name) for name in PARTS.keys() & changes.keys()}
        if named and values.get("model") == "gpt" and "model" not in changes:
            values["model"] = PARTED
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
        return cls(task=task, **{"parts": named, **values})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSettings":
        """Read what `dataclasses.asdict` and JSON have made of settings.

        In older versions the parts lay beside the other settings: they are moved.

        Raises:
            TypeError: the task is missing, or a setting unknown.
            ValueError: as the class.
        """
        given, parts = dict[str, Any](), dict[str, Any]()
        for name, value in values.items():
            if name in PARTS:
                parts |= {} if value is None else {name: value}
            else:
                texts = name in ("files", "without") and isinstance(value, list)
                given[name] = tuple(value) if texts else value
        if isinstance(given.get("parts", {}), Mapping):
            given["parts"] = {**given.get("parts", {}), **parts}
        return cls(**given)

    def flat(self) -> dict[str, Any]:
        """Return all settings by name; of a model with parts, these among them."""
        values: dict[str, Any] = {}
        for name, value in dataclasses.asdict(self).items():
            if name != "parts":
                values[name] = value
                continue
            if self.model == PARTED:
                values |= {each: part.default for each, part in PARTS.items()}
            values |= value
        return values

    def sizes(self, *, vocab_size: int, pad_id: int | None) -> dict[str, Any]:
        """Return the sizes of the model, by the names of its config, and its parts."""
        names = "d_model num_heads num_layers d_ff max_len dropout bias"
        own = {name: getattr(self, name) for name in names.split()}
        if self.model != PARTED and self.d_ff is None:
            own["d_ff"] = 4 * self.d_model
        return {"vocab_size": vocab_size, "pad_id": pad_id, **own, **self.parts}

    def __post_init__(self) -> None:
        kinds = get_type_hints(RunSettings)
        for name in ("task", "files"):
            check_type(name, getattr(self, name), kinds[name])
        check_one_of("task", self.task, PRESETS)
        for setting in dataclasses.fields(self):
            if setting.metadata:
                check_setting(setting, getattr(self, setting.name), kinds[setting.name])
        for name in self.without:
            check_one_of("without", name, ABLATIONS)
        if self.seed >= 2**63:
            raise ValueError(f"seed ({self.seed}) must be below 2^63")
        object.__setattr__(self, "parts", checked_parts(self.parts))
        check_together(self)


_NAMES = {setting.name for setting in dataclasses.fields(RunSettings)}
