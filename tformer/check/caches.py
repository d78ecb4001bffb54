"""Specs of caches: whatever comes in pieces gives what the whole gives."""

from copy import deepcopy
from typing import Any

import numpy as np

from tformer.check.attention import attention
from tformer.check.spec import Case, Function, Spec, draw, mistakes

Array = np.ndarray


def _in_pieces(step: Function, query: Any, key: Any, value: Any, sizes: Any) -> Any:
    """Read two texts in turn, each with a cache of its own."""
    outputs: list[Any] = []
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    begin = 0
    for size in sizes:
        q, k, v = (x[:, :, begin : begin + size] for x in (query, key, value))
        outputs += [step(q, k, v, first), step(k, q, v, second)]
        begin += size
    return outputs


def cached_step(q: Array, k: Array, v: Array, cache: dict[str, Any]) -> Array:
    """Attend from the new tokens to all so far."""
    old = cache.get("old", (k[:, :, :0], v[:, :, :0]))
    keys = np.concatenate((old[0], k), 2)
    values = np.concatenate((old[1], v), 2)
    cache["old"] = keys, values
    T, S = q.shape[2], keys.shape[2]
    return attention(q, keys, values, np.tri(T, S, S - T, dtype=bool))


_MISTAKES = """
    # decoding#the-formula
    forgets: You attend to the new tokens alone: append them to the cache.
        cache["old"] = keys, values → pass
    newest_unread: You attend to the old tokens only: a token sees itself too.
        S - T, dtype=bool)) → S - T, dtype=bool) & (np.arange(S) < max(1, S - T)))
    keys_only: You keep the old keys with the new values in their place.
        (old[1], v) → (0 * old[1], v)
"""
_TEXTS = tuple(draw(2, 2, 4, 3, seed=i) for i in range(3))
_SPLITS = ([3, 1], [2, 2], [1, 3], [2, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1, 1], [4])
_ALL = ("state", "inputs", "layout", "dtype", "precision")
CACHED_STEP = Spec(
    "cached_step",
    "cached_step(q, k, v, cache)",
    (
        Case("one token", (*(draw(1, 1, 1, 2, seed=i) for i in range(3)), [1])),
        Case("two tokens", (*(draw(1, 2, 2, 3, seed=i) for i in range(3)), [1, 1])),
        Case("four tokens", (*_TEXTS, [1, 1, 1, 1])),
    ),
    cached_step,
    mistakes(cached_step, _MISTAKES),
    properties=_ALL,
    run=_in_pieces,
)
CACHED_PIECES = Spec(
    "cached_pieces",
    "cached_step(q, k, v, cache), several tokens at a time",
    tuple(Case(f"in pieces of {sizes}", (*_TEXTS, sizes)) for sizes in _SPLITS),
    cached_step,
    mistakes(
        cached_step,
        f"""{_MISTAKES.rstrip()}
    first_on_first: You line up the first new token with the first key: the last stands
        at the last.
        np.tri(T, S, S - T, → np.tri(T, S, 0,
    in_front: You put the new tokens before the old ones.
        (old[0], k) → (k, old[0])
        (old[1], v) → (v, old[1])
    no_mask: Several new tokens see what comes after them.
        np.tri(T, S, S - T, → np.tri(T, S, S,
    """,
    ),
    properties=_ALL,
    run=_in_pieces,
)


class Tokens:
    """A cache in lists: what each row holds, token by token.

    Args:
        limit: `max_len`, which is not held to; with `rolling` the window.
        rolling: `append` returns what the new tokens may see only.
    """

    def __init__(self, limit: int, rolling: bool = False) -> None:
        self.seen = limit - 1 if rolling else 10**9
        self.keys: list[list[Array]] = []
        self.values: list[list[Array]] = []

    @property
    def length(self) -> int:
        """How many tokens have come."""
        return len(self.keys[0]) if self.keys else 0

    def append(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Write new tokens after the others; return what they may see."""
        begin = max(0, self.length - self.seen)
        for held, new in ((self.keys, key), (self.values, value)):
            held += [[] for _ in range(len(new) - len(held))]
            for row, of_row in zip(held, new, strict=True):
                row += [of_row[:, t] for t in range(of_row.shape[1])]
        keys = np.array([row[begin:] for row in self.keys])
        values = np.array([row[begin:] for row in self.values])
        return keys.swapaxes(1, 2), values.swapaxes(1, 2)

    def reorder(self, rows: Array) -> None:
        """Let row i go on from row rows[i]."""
        chosen = [int(row) for row in rows]
        self.keys = [list(self.keys[row]) for row in chosen]
        self.values = [list(self.values[row]) for row in chosen]

    def truncate(self, length: int) -> None:
        """Forget all but the first."""
        for row in (*self.keys, *self.values):
            del row[length:]

    def copy(self, max_len: int) -> "Tokens":  # noqa: ARG002 - lists have room
        """Make one of its own."""
        return deepcopy(self)


def rolling(window: int) -> Tokens:
    """Make a cache for an attention with a window."""
    return Tokens(window, rolling=True)


def _follow(
    new_cache: Function, limit: int, key: Any, value: Any, rows: Any, script: Any
) -> list[Any]:
    """Do to a cache what a script says; return keys, values and lengths on the way."""
    cache, begin, kept = new_cache(limit), 0, []
    for word, number in script:
        end = begin + number
        if word in ("append", "copy"):  # a copy goes on by itself
            to = cache if word == "append" else cache.copy(key.shape[2])
            new = to.append(key[:, :, begin:end], value[:, :, begin:end])
            kept += [deepcopy(new[0]), deepcopy(new[1]), to.length]
            begin = end if word == "append" else begin
        elif word == "reorder":
            cache.reorder(rows)
        else:
            cache.truncate(number)
        kept.append(cache.length)
    return kept


_KEYS = (draw(3, 2, 11, 3), draw(3, 2, 11, 3, seed=1), np.array([2, 0, 0]))
_SCRIPTS = {
    "two appends": [("append", 3), ("append", 1)],
    "a reorder": [("append", 2), ("reorder", 0), ("append", 1)],
    "a copy": [("append", 2), ("copy", 2), ("append", 1), ("append", 3)],
}
_CUT = {
    "truncated": [("append", 4), ("truncate", 2), ("append", 1)],
    "truncated to nothing": [("append", 2), ("truncate", 0), ("append", 2)],
    "all of it": [
        *(("append", 3), ("reorder", 0), ("truncate", 2), ("append", 2)),
        *(("copy", 3), ("reorder", 0), ("append", 1)),
    ],
}
_ROLLED = {
    "token by token": [("append", 1)] * 11,
    "more than the window": [("append", 5), ("append", 4), ("append", 1)],
}
_REORDERS = """
    # decoding#the-code
    keys_stay: Your reorder changes the values' rows and not the keys'.
        list(self.keys[row]) for row in chosen → list(row) for row in self.keys
    inverse: Row i goes on from row rows[i]; yours goes on in it.
        int(row) for row in rows → int(row) for row in np.argsort(rows)
    shared_copy: What is written into a copy is written into the original.
        deepcopy(self) → self
"""
CACHE = Spec(
    "cache",
    "new_cache(max_len), with append, reorder, truncate, copy, length",
    tuple(
        Case(name, (11, *_KEYS, script)) for name, script in (_SCRIPTS | _CUT).items()
    ),
    Tokens,
    mistakes(
        Tokens,
        f"""{_REORDERS.rstrip()}
    not_cut: Your truncate forgets nothing.
        del row[length:] → pass
    cut_at_the_front: Your truncate forgets the first tokens and not the last.
        del row[length:] → del row[: len(row) - length]
    values_not_cut: Your truncate forgets keys and no values.
        in (*self.keys, *self.values) → in self.keys
    """,
    ),
    properties=_ALL,
    run=_follow,
)
ROLLING_CACHE = Spec(
    "rolling_cache",
    "new_cache(window), with append, reorder, copy, length",
    tuple(
        Case(f"{name}, window {window}", (window, *_KEYS, script))
        for window in (1, 3)
        for name, script in (_SCRIPTS | _ROLLED).items()
    ),
    rolling,
    mistakes(
        rolling,
        """
        # small-caches#the-cache-keeps-too-much
        one_more: You return W tokens before the new ones; the first new one sees W - 1.
            Tokens(window, → Tokens(window + 1,
        one_less: You return W - 2 tokens before the new ones; the first sees W - 1.
            Tokens(window, → Tokens(max(window - 1, 1),
        whole: You return all that ever came.
            rolling=True → rolling=False
        """,
    ),
    properties=_ALL,
    run=_follow,
)
