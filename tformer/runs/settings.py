"""What a run is asked to do: the task, the model's sizes, and how to train it."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from tformer.runs import parts
from tformer.runs.presets import OWN_FILES, PRESETS
from tformer.runs.settings_checks import check_one_of, check_settings, check_type


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
        experts: in place of each feed-forward network so many, of its kind and width,
            of which each token uses a few.
        top_k: how many of the experts a token uses: 2 if not given.
        shared_experts: so many more, as one network, which every token uses.
        kv_rank: in place of keys and values keep one vector of this width for a token.
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
        optimizer: "adamw"; or "muon" for the matrices inside the layers, and AdamW for
            the rest, with one learning rate for both.
        learning_rate: the highest of "cosine"; a factor of "inverse-sqrt", whose
            formula has none: 1 if it is not given.
        schedule: "cosine" or "inverse-sqrt" (the paper's).
        warmup_steps: while which the learning rate rises.
        weight_decay: of matrices.
        beta2: how much of the gradients' mean square each step of AdamW keeps.
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
    experts: int | None = None
    top_k: int | None = None
    shared_experts: int | None = None
    kv_rank: int | None = None
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
    optimizer: str = "adamw"
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
        check_one_of("task", task, PRESETS)
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
            check_type(name, values[name], kinds[name])
        return cls(**{**values, **{name: tuple(x) for name, x in tuples.items()}})

    def __post_init__(self) -> None:
        check_settings(self)
