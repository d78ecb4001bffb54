"""What mistakes with caches attend to."""

import numpy as np

from tformer.check.attention import attention
from tformer.check.spec import Array


def with_empty(q: Array, keys: Array, values: Array) -> Array:
    """Attend to a buffer for 64 tokens."""
    empty = np.zeros((*keys.shape[:2], 64 - keys.shape[2], keys.shape[3]))
    keys, values = (np.concatenate((x, empty), 2) for x in (keys, values))
    return attention(q, keys, values)


def with_last_again(*kept: Array) -> list[Array]:
    """Repeat the last token of each, (B, H, S, Dh)."""
    return [np.concatenate((x, x[:, :, -1:]), 2) for x in kept]


def of_first(*kept: Array) -> list[Array]:
    """Give all texts what the first one has."""
    return [np.broadcast_to(x[:1], x.shape) for x in kept]


def but_first(cache: dict[str, tuple[Array, ...]], *kept: Array) -> None:
    """Keep what a text has, but nothing of its first token."""
    cache["old"] = kept if "old" in cache else tuple(x[:, :, :0] for x in kept)
