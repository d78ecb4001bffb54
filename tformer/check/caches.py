"""Specs of caches: whatever comes in pieces gives what the whole gives."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np

from tformer.check import caching  # noqa: F401 - for a mistake
from tformer.check.attention import attention
from tformer.check.calling import in_pieces
from tformer.check.masks import causal_mask
from tformer.check.spec import Array, Case, Spec, draw

_ALL = ("state", "inputs", "layout", "dtype", "precision")
_TEXTS = tuple(draw(2, 2, 4, 3, seed=i) for i in range(3))
_SPLITS = ([3, 1], [2, 2], [1, 3], [2, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1, 1], [4])


@Spec(
    *(Case(f"in pieces of {sizes}", (*_TEXTS, sizes)) for sizes in _SPLITS),
    wrong="""
    # kv-cache#the-smallest-case
    in_front: You put the new tokens before the old ones.
        (old[0], k) → (k, old[0])
        (old[1], v) → (v, old[1])
    no_mask: Several new tokens see what comes after them.
        causal_mask(T, S) → None
    """,
    parts={
        "cached_step": "forgets newest_unread keys_only",
        "causal_mask": "first_on_first",
    },
    name="cached_pieces",
    properties=_ALL,
    run=in_pieces,
)
@Spec(
    Case("one token", (*(draw(1, 1, 1, 2, seed=i) for i in range(3)), [1])),
    Case("two tokens", (*(draw(1, 2, 2, 3, seed=i) for i in range(3)), [1, 1])),
    Case("four tokens", (*_TEXTS, [1, 1, 1, 1])),
    Case("eleven tokens", (*(draw(1, 2, 11, 3, seed=i) for i in range(3)), [1] * 11)),
    Case("large scores", (*(40 * draw(1, 1, 3, 3, seed=i) for i in range(3)), [1] * 3)),
    wrong="""
    # kv-cache#the-smallest-case
    forgets: You attend to the new tokens alone: append them to the cache.
        cache["old"] = keys, values → pass
    no_first: Your cache is empty at a text's first token: read it with `get`.
        cache.get("old", (k[:, :, :0], v[:, :, :0])) → cache["old"]
    first_alone: You attend to the first token alone: the newest sees all so far.
        causal_mask(T, S) → np.arange(S) < 1
    last_two: You attend to the last two tokens: keep all.
        causal_mask(T, S) → np.arange(S) >= S - 2
    last_four: You attend to the last four tokens: keep all.
        causal_mask(T, S) → np.arange(S) >= S - 4
    last_five: You attend to the last five tokens: keep all.
        causal_mask(T, S) → np.arange(S) >= S - 5
    last_eight: You attend to the last eight tokens: keep all.
        causal_mask(T, S) → np.arange(S) >= S - 8
    first_left_out: You do not keep the first token of a text.
        cache["old"] = keys, values → caching.but_first(cache, keys, values)
    first_kept: You attend to the first token and the newest: keep all.
        cache["old"] = keys, values → cache.setdefault("old", (k, v))
    empty_places: You attend to places of your cache that are not filled yet.
        attention(q, keys, values, causal_mask(T, S)) →
            caching.with_empty(q, keys, values)
    scaled_again: You scaled the old keys again in each step.
        cache["old"] = keys, values → cache["old"] = keys / np.sqrt(q.shape[-1]), values
    values_in_front: You put new values before the old and not the keys, or the reverse.
        (old[1], v) → (v, old[1])
    added_up: Your values are added up: append them, and weigh them by softmax.
        keys = np.concatenate((old[0], k), 2) →
            keys = old[0].sum(2, keepdims=True) + k
        values = np.concatenate((old[1], v), 2) →
            values = old[1].sum(2, keepdims=True) + v
    kept_twice: You keep the newest token twice.
        cache["old"] = keys, values → cache["old"] = (
            np.concatenate((keys, k), 2), np.concatenate((values, v), 2))
    newest_twice: You attend to the newest token twice: from the cache, and as it comes.
        attention(q, keys, values, causal_mask(T, S)) →
            attention(q, *caching.with_last_again(keys, values))
    first_text_kept: You keep what the first text of the batch has, for all of them.
        cache["old"] = keys, values → cache["old"] = caching.of_first(keys, values)
    queries_kept: You keep queries in place of keys.
        (old[0], k) → (old[0], q)
    stored_swapped: You store keys as values, and values as keys.
        cache["old"] = keys, values → cache["old"] = values, keys
    query_stored: You store the newest query in place of its key.
        cache["old"] = keys, values → cache["old"] = (
            np.concatenate((old[0], q), 2), values)
    value_is_key: You keep keys in place of values.
        (old[1], v) → (old[1], k)
    swapped: You exchanged keys and values.
        (old[0], k) → (old[0], v)
        (old[1], v) → (old[1], k)
    newest_unread: You attend to the old tokens only: a token sees itself too.
        causal_mask(T, S) → causal_mask(T, S) & (np.arange(S) < max(1, S - T))
    keys_only: You keep the old keys with the new values in their place.
        (old[1], v) → (0 * old[1], v)
    """,
    parts={
        "attention": """unscaled divided_by_d multiplied cosine cosine_scaled
        number_of_keys scaled_after no_softmax width_of_model sigmoid
        not_normalised not_divided softmax_twice overflow mean_of_values hardest"""
    },
    properties=_ALL,
    run=in_pieces,
)
def cached_step(
    q: Array, k: Array, v: Array, cache: dict[str, tuple[Array, Array]]
) -> Array:
    """Attend from the new tokens to all so far."""
    old = cache.get("old", (k[:, :, :0], v[:, :, :0]))
    keys = np.concatenate((old[0], k), 2)
    values = np.concatenate((old[1], v), 2)
    cache["old"] = keys, values
    T, S = q.shape[2], keys.shape[2]
    return attention(q, keys, values, causal_mask(T, S))


def _follow(
    new_cache: "Callable[[int], Tokens]",
    limit: int,
    key: Array,
    value: Array,
    rows: Array,
    script: list[tuple[str, int]],
) -> list[object]:
    """Do to a cache what a script says; return keys, values and lengths on the way."""
    cache, begin = new_cache(limit), 0
    kept: list[object] = []
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


@Spec(
    *(Case(name, (11, *_KEYS, script)) for name, script in (_SCRIPTS | _CUT).items()),
    wrong="""
    # kv-cache#the-code
    keys_stay: Your reorder changes the values' rows and not the keys'.
        x[rows] for x in self.keys → x for x in self.keys
    inverse: Row i goes on from row rows[i]; yours goes on in it.
        x[rows] for x in self.keys → x[np.argsort(rows)] for x in self.keys
        x[rows] for x in self.values → x[np.argsort(rows)] for x in self.values
    shared_copy: What is written into a copy is written into the original.
        deepcopy(self) → self
    not_cut: Your truncate forgets nothing.
        del held[length:] → pass
    cut_at_the_front: Your truncate forgets the first tokens and not the last.
        del held[length:] → del held[: len(held) - length]
    values_not_cut: Your truncate forgets keys and no values.
        in (self.keys, self.values) → in (self.keys,)
    """,
    name="cache",
    properties=_ALL,
    run=_follow,
)
class Tokens:
    """A cache in lists: token by token what all rows hold, each (B, H, Dh).

    Args:
        limit: `max_len`, which is not held to; with `rolling` the window.
        rolling: `append` returns what the new tokens may see only.
    """

    def __init__(self, limit: int, rolling: bool = False) -> None:
        self.seen = limit - 1 if rolling else 10**9
        self.keys: list[Array] = []
        self.values: list[Array] = []

    @property
    def length(self) -> int:
        """How many tokens have come."""
        return len(self.keys)

    def append(self, key: Array, value: Array) -> tuple[Array, Array]:
        """Write new tokens after the others; return what they may see."""
        begin = max(0, self.length - self.seen)
        for t in range(key.shape[2]):
            self.keys.append(key[:, :, t])
            self.values.append(value[:, :, t])
        return np.stack(self.keys[begin:], 2), np.stack(self.values[begin:], 2)

    def reorder(self, rows: Array) -> None:
        """Let row i go on from row rows[i]."""
        self.keys = [x[rows] for x in self.keys]
        self.values = [x[rows] for x in self.values]

    def truncate(self, length: int) -> None:
        """Forget all but the first."""
        for held in (self.keys, self.values):
            del held[length:]

    def copy(self, max_len: int) -> "Tokens":  # noqa: ARG002 - lists have room
        """Make one of its own."""
        return deepcopy(self)


@Spec(
    *(
        Case(f"{name}, window {window}", (window, *_KEYS, script))
        for window in (1, 3)
        for name, script in (_SCRIPTS | _ROLLED).items()
    ),
    wrong="""
    # small-caches#the-cache-keeps-too-much
    one_more: You return W tokens before the new ones; the first new one sees W - 1.
        Tokens(window, → Tokens(window + 1,
    one_less: You return W - 2 tokens before the new ones; the first sees W - 1.
        Tokens(window, → Tokens(max(window - 1, 1),
    whole: You return all that ever came.
        rolling=True → rolling=False
    """,
    name="rolling_cache",
    properties=_ALL,
    run=_follow,
)
def rolling(window: int) -> Tokens:
    """Make a cache for an attention with a window."""
    return Tokens(window, rolling=True)
