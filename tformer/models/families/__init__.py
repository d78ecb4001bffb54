"""Model families: each a short file, `build(config)` in Hugging Face's own words.

A family is found by the `model_type` of its config. No module and no formula lives
here: a family puts those of `tformer.nn` together.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

FAMILIES = {
    "gpt2": "gpt2",
    "llama": "llama",
    "mistral": "mistral",
    "qwen3": "qwen3",
    "tformer": "custom",
}


def family_of(config: Mapping[str, Any]) -> ModuleType:
    """Return the module with `build` and `rename` for this config."""
    kind = config.get("model_type")
    if kind not in [*FAMILIES]:  # a list, say, is not hashable
        known = ", ".join(FAMILIES)
        raise ValueError(f"model_type ({kind!r}) must be one of {known}")
    return import_module(f"tformer.models.families.{FAMILIES[kind]}")
