"""From a config to its model, and from a model to its config, whatever its kind."""

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import TypeAlias, TypeVar

from tformer.models.bert import BERT, BERTConfig
from tformer.models.causal_lm import CausalLM
from tformer.models.config import TransformerConfig
from tformer.models.families import Config, family_of
from tformer.models.seq2seq_lm import Seq2SeqLM
from tformer.models.transformer import Transformer

Model: TypeAlias = Seq2SeqLM | BERT | CausalLM
T = TypeVar("T")

ADDED = {"head": True, "pooler": False}  # which older versions saved no word of
# What older versions called a weight, and what it is called today.
OLD_NAMES = (
    (r"^stacks\.", ""),
    (r"^stack\.norm\.", "norm."),
    (r"^stack\.layers\.", "blocks."),
    (r"\blayers\.(\d+)\.", r"blocks.\1."),
    (r"\.self_attn_residual\.norm\.", ".attention_norm."),
    (r"\.cross_attn_residual\.norm\.", ".cross_attention_norm."),
    (r"\.feed_forward_residual\.norm\.", ".feed_forward_norm."),
    (r"\.self_attn\.", ".attention."),
    (r"\.cross_attn\.", ".cross_attention."),
)


def build_model(config: Config) -> Model:
    """Make the model of a config, with random weights.

    Raises:
        TypeError: a value is of another kind.
        ValueError: the `model_type` or a word is unknown, or a value out of range.
    """
    kind, kinds = config.get("model_type"), {"transformer": Transformer, "bert": BERT}
    if kind not in ("transformer", "bert") or "hidden_size" in config:
        return family_of(config).build(config)
    of_config = BERTConfig if kind == "bert" else TransformerConfig
    names = {field.name for field in dataclasses.fields(of_config)}
    if kind == "bert":
        config = {**ADDED, **config}
    for name in sorted((config.keys() ^ names) - {"model_type", "tformer_version"}):
        verb = "lacks" if name in names else "has an unknown"
        raise ValueError(f"config {verb} {name!r}")
    return kinds[kind](of_config(**{name: config[name] for name in names}))


def config_of(model: Model) -> dict[str, object]:
    """Return what `build_model` makes the model of again.

    Raises:
        ValueError: it was put together by hand, without a config.
    """
    if isinstance(model, Transformer | BERT):
        kind = type(model).__name__.lower()
        return {"model_type": kind, **dataclasses.asdict(model.config)}
    if isinstance(model, CausalLM | Seq2SeqLM) and model.config:
        return dict(model.config)
    raise ValueError(f"model ({type(model).__name__}) was built without a config")


def names_of_today(state: Mapping[str, T], own: Collection[str]) -> dict[str, T]:
    """Give weights that an older version has saved the names of today.

    Args:
        state: of a model by name; or of a training, with "model." or
            "optimizer.state." before the names.
        own: the names of today. A weight is renamed only if it gets one of these.
    """
    ours = {}
    for name, x in state.items():
        before = (x for x in ("model.", "optimizer.state.") if name.startswith(x))
        prefix = next(before, "")
        rest = name.removeprefix(prefix)
        for old, new in OLD_NAMES:
            rest = re.sub(old, new, rest)
        names = (name, prefix + rest, f"{prefix}encoder.{rest}")  # the last: of a BERT
        # A name that another weight has, too, is not given: else one would be lost.
        free = (n for n in names if n in own and (n == name or n not in state))
        ours[next(free, name)] = x
    return ours
