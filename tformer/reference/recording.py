"""Attention weights in NumPy, kept while a model runs.

B batch · H heads · T queries · S keys
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np

from tformer.reference.attention import attention_weights, mix_values


class Attention(Protocol):
    """What attends by a function, in whose place another may be put."""

    attend: Callable[..., np.ndarray]


class RecordedWeights(dict[object, np.ndarray]):
    """The weights (B, H, T, S) of each attention that ran, as they were the last time.

    `weights[model.encoder.blocks[0].attention]`, or by its name in the model:
    `weights["encoder.blocks.0.attention"]`.
    """

    def __init__(self, attentions: dict[str, Attention]) -> None:
        super().__init__()
        self.attentions = attentions

    def __missing__(self, name: str) -> np.ndarray:
        return self[self.attentions[name]]

    def by_name(self) -> dict[str, np.ndarray]:
        """Return {"encoder.blocks.0.attention": weights, …}, in the model's order."""
        return {
            name: self[each] for name, each in self.attentions.items() if each in self
        }


@contextmanager
def record_weights(model: object) -> Iterator[RecordedWeights]:
    """Keep the weights of every attention of a model while the block runs."""
    weights = RecordedWeights(dict(_attentions(model)))
    before = {each: vars(each).get("attend") for each in weights.attentions.values()}
    for each in before:
        each.attend = partial(_attend_and_keep, weights, each)
    try:
        yield weights
    finally:
        for each, attend in before.items():
            del each.attend
            if attend is not None:
                each.attend = attend


def _attend_and_keep(
    weights: RecordedWeights,
    attention: Attention,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *mask: np.ndarray,
    **options: Any,
) -> np.ndarray:
    """Do what `scaled_dot_product_attention` does, and keep the weights."""
    weights[attention] = attention_weights(query, key, *mask, **options)
    return mix_values(weights[attention], value)


def _attentions(part: object, name: str = "") -> Iterator[tuple[str, Attention]]:
    """Find each attention in a part of a model, and its name."""
    if hasattr(part, "attend"):
        yield name, part
        return
    inside = enumerate(part) if isinstance(part, list) else vars(part).items()
    for key, child in inside:
        if isinstance(child, list) or hasattr(child, "__dict__"):
            yield from _attentions(child, f"{name}.{key}" if name else str(key))
