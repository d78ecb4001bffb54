"""The models by name, as checkpoints and runs call them."""

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tformer.models.bert import BERT, BERTConfig
    from tformer.models.causal_config import CausalLMConfig
    from tformer.models.causal_lm import CausalLM
    from tformer.models.config import TransformerConfig
    from tformer.models.gpt import GPT, GPTConfig
    from tformer.models.transformer import Transformer


Model: TypeAlias = "Transformer | GPT | BERT | CausalLM"
ModelConfig: TypeAlias = "TransformerConfig | GPTConfig | BERTConfig | CausalLMConfig"

# The name of a class, its module, and its config's class and module.
ARCHITECTURES = {
    "Transformer": ("transformer", "TransformerConfig", "config"),
    "GPT": ("gpt", "GPTConfig", "gpt"),
    "BERT": ("bert", "BERTConfig", "bert"),
    "CausalLM": ("causal_lm", "CausalLMConfig", "causal_config"),
}


def make_config(architecture: str, values: Mapping[str, Any]) -> ModelConfig:
    """Make the config of an architecture from its values by name.

    Raises:
        ValueError: there is no such architecture, it has no such value, or a value is
            missing or out of its range.
    """
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"architecture ({architecture!r}) must be one of {known}")
    _, name, module = ARCHITECTURES[architecture]
    config_class: Any = getattr(import_module(f"tformer.models.{module}"), name)
    names = {field.name for field in dataclasses.fields(config_class)}
    for value in sorted(names ^ values.keys()):
        verb = "lacks" if value in names else "has an unknown"
        raise ValueError(f"config {verb} {value!r}")
    config: ModelConfig = config_class(**values)
    return config


def make_model(config: ModelConfig) -> Model:
    """Make a new model of a config, with random weights."""
    for architecture, (module, name, _) in ARCHITECTURES.items():
        if name == type(config).__name__:
            model: Model
            model = getattr(import_module(f"tformer.models.{module}"), architecture)(
                config
            )
            return model
    raise TypeError(f"config must be of a model of tformer, not {type(config)}")
