"""Attention weights in NumPy, kept while a model runs.

B batch · H heads · T queries · S keys
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np

from tformer.reference.attention import attention_weights


class Attention(Protocol):
    """What attends by a function, in whose place another may be put."""

    attend: Callable[..., np.ndarray]


@contextmanager
def record_weights(model: object) -> Iterator[dict[str, np.ndarray]]:
    """Keep the weights (B, H, T, S) of every attention of a model while the block runs.

    By its name in the model, such as "encoder.blocks.0.attention"; "" is the model
    itself. Of an attention that ran several times the last weights are kept.
    """
    kept: dict[str, np.ndarray] = {}
    attentions = dict(_attentions(model))
    before = {each: vars(each).get("attend") for each in attentions.values()}
    for name, each in attentions.items():
        each.attend = partial(_attend_and_keep, each.attend, kept, name)
    try:
        yield kept
    finally:
        for each, attend in before.items():
            del each.attend
            if attend is not None:
                each.attend = attend


def _attend_and_keep(
    attend: Callable[..., np.ndarray],
    kept: dict[str, np.ndarray],
    name: str,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *mask: np.ndarray,
    **options: Any,
) -> np.ndarray:
    """Attend, and keep the weights."""
    kept[name] = attention_weights(query, key, *mask, **options)
    return attend(query, key, value, *mask, **options)


def _attentions(part: object, name: str = "") -> Iterator[tuple[str, Attention]]:
    """Find each attention in a part of a model, and its name."""
    if hasattr(part, "attend"):
        yield name, part
        return
    inside = enumerate(part) if isinstance(part, list) else vars(part).items()
    for key, child in inside:
        if isinstance(child, list) or hasattr(child, "__dict__"):
            yield from _attentions(child, f"{name}.{key}" if name else str(key))
