"""What a run is asked to do: each setting once, with its default and its meaning."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar, get_type_hints

from tformer.files import Json
from tformer.models.families.custom import PARTS, check_config
from tformer.runs.rules import (
    ABLATIONS,
    ABOVE_0,
    AT_LEAST_0,
    AT_LEAST_1,
    DECAY,
    FRACTION,
    OWN_FILES,
    PARTED,
    PRESETS,
    RATE,
    SEED,
    Bound,
    check_one_of,
    check_texts,
    check_together,
    check_type,
    checked_parts,
)
from tformer.training.precision import DTYPES

T = TypeVar("T")


def _setting(
    panel: str,
    default: T,
    help: str,
    *,
    bound: Bound | None = None,
    among: tuple[str, ...] = (),
) -> T:
    """Declare a setting: the command line makes an option of it, in its panel."""
    if bound is None and type(default) in (int, type(None)):
        bound = AT_LEAST_1
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
    dropout: float = _model(0.0, "Probability.", bound=FRACTION)
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
        3e-3, "The highest of cosine; a factor of inverse-sqrt.", bound=RATE
    )
    schedule: str = _training(
        "cosine",
        "cosine or inverse-sqrt (the paper's).",
        among=("cosine", "inverse-sqrt"),
    )
    warmup_steps: int = _training(
        200, "While which the learning rate rises.", bound=AT_LEAST_0
    )
    weight_decay: float = _training(0.01, "Of matrices.", bound=DECAY)
    beta2: float = _training(
        0.98,
        "How much of the gradients' mean square a step of AdamW keeps.",
        bound=FRACTION,
    )
    clip_norm: float = _training(
        1.0, "Longer gradients are shortened to it.", bound=ABOVE_0
    )
    smoothing: float = _training(0.0, "Of the labels.", bound=FRACTION)
    precision: str = _training("fp32", f"{', '.join(DTYPES)}.", among=tuple(DTYPES))
    compile: bool = _training(False, "Let torch.compile make kernels for the model.")
    seed: int = _training(0, "Of weights, data, dropout.", bound=SEED)
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
        return cls.from_json({"task": task, "parts": named, **values})

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunSettings":
        """Read what `dataclasses.asdict` and JSON have made of settings.

        In older versions the parts lay beside the other settings: they are moved.

        Raises:
            ValueError: as the class; or the task is missing, or a setting unknown.
        """
        if not isinstance(values, Mapping):
            raise ValueError(f"settings ({values!r}) must be an object")
        ours = {setting.name for setting in fields(cls)}
        given: Json = {"task": None, "parts": {}}
        moved: Json = {}
        for name, value in values.items():
            if name in PARTS:
                moved |= {} if value is None else {name: value}
            elif name not in ours:
                raise ValueError(f"there is no setting {name!r}")
            else:
                given[name] = tuple(value) if isinstance(value, list) else value
        if isinstance(given["parts"], Mapping):
            given["parts"] = {**given["parts"], **moved}
        return cls(**given)

    def flat(self) -> Json:
        """Return all settings by name; of a model with parts, these among them."""
        values: Json = {}
        for name, value in dataclasses.asdict(self).items():
            if name != "parts":
                values[name] = value
                continue
            if self.model == PARTED:
                values |= {each: part.default for each, part in PARTS.items()}
            values |= value
        return values

    def sizes(self, *, vocab_size: int, pad_id: int | None) -> Json:
        """Return the sizes of the model, by the names of its config, and its parts."""
        names = "d_model num_heads num_layers d_ff max_len dropout bias"
        own = {name: getattr(self, name) for name in names.split()}
        if self.model != PARTED and self.d_ff is None:
            own["d_ff"] = 4 * self.d_model
        return {"vocab_size": vocab_size, "pad_id": pad_id, **own, **self.parts}

    def __post_init__(self) -> None:
        check_type("task", self.task, str)
        check_one_of("task", self.task, PRESETS)
        kinds = get_type_hints(RunSettings)
        for setting in fields(self):
            name, about = setting.name, setting.metadata
            value = getattr(self, name)
            if kinds[name] == tuple[str, ...]:
                check_texts(name, value)
            elif about and about["among"]:
                check_one_of(name, value, about["among"])
            elif about:
                check_type(name, value, kinds[name])
                bound = about["bound"]
                if bound and value is not None and not bound.fits(value):
                    raise ValueError(f"{name} ({value}) must be {bound.words}")
        for name in self.without:
            check_one_of("without", name, ABLATIONS)
        object.__setattr__(self, "parts", checked_parts(self.parts))
        check_together(self)
        if self.model == PARTED:
            check_config(self.sizes(vocab_size=1, pad_id=None))
