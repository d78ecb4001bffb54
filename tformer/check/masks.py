"""Specs of masks: booleans, True = may attend."""

from collections.abc import Callable
from functools import reduce

import numpy as np

from tformer.check.spec import Case, Spec, mistakes

Array = np.ndarray
Seen = Callable[[int, int, int, int | None], bool]


def _mask(seen: Seen) -> Callable[..., Array]:
    """Make (T, S) of what query t sees of key s: of t, s, S - T and the window."""

    def make(T: int, S: int, *, window: int | None = None) -> Array:
        rows = [[seen(t, s, S - T, window) for s in range(S)] for t in range(T)]
        return np.array(rows, bool).reshape(T, S)

    return make


def _in_window(t: int, s: int, apart: int, window: int | None) -> bool:
    return s <= t + apart and (window is None or s > t + apart - window)


def length_mask(lengths: Array, max_len: int) -> Array:
    """Say of each key whether it is a real token, one by one."""
    rows = [[j < length for j in range(max_len)] for length in lengths.tolist()]
    return np.array(rows, bool)[:, None, None]  # (B, 1, 1, S)


def combine_masks(*masks: Array | None) -> Array | None:
    """Allow what all allow, entry by entry."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    shape = np.broadcast_shapes(*(mask.shape for mask in given))
    whole = [np.broadcast_to(mask, shape) for mask in given]
    combined = np.zeros(shape, bool)
    for at in np.ndindex(combined.shape):
        combined[at] = all(bool(mask[at]) for mask in whole)
    return combined


def _folded(one: Callable[[Array, Array], Array]) -> Callable[..., Array | None]:
    def combine(*masks: Array | None) -> Array | None:
        given = [mask for mask in masks if mask is not None]
        return reduce(one, given) if given else None

    return combine


WRONG_MASKS = (
    *mistakes(
        "masks#the-formula",
        {
            "first_on_first: You lined up the first query with the first key: "
            "it must be the last with the last.": _mask(
                lambda t, s, apart, w: _in_window(t, s, 0, w)
            ),
            "diagonal_hidden: You hid a query's own key.": _mask(
                lambda t, s, apart, w: s < t + apart and _in_window(t, s, apart, w)
            ),
            "one_ahead: You let a query see the next key.": _mask(
                lambda t, s, apart, w: _in_window(t, s - 1, apart, w)
            ),
            "inverted: You marked what a query may not see: True = may attend.": _mask(
                lambda t, s, apart, w: not _in_window(t, s, apart, w)
            ),
            "transposed: You let a query see itself and what comes after it.": _mask(
                lambda t, s, apart, w: s >= t + apart
            ),
        },
    ),
    *mistakes(
        "long-context#one-key-too-many",
        {
            "window_one_more: You count the keys before the query: its own is one of "
            "the window.": _mask(
                lambda t, s, apart, w: _in_window(t, s, apart, w and w + 1)
            ),
            "window_ignored: You let a query see its whole past.": _mask(
                lambda t, s, apart, w: _in_window(t, s, apart, None)
            ),
            "window_both_ways: Your window looks ahead too.": _mask(
                lambda t, s, apart, w: (
                    _in_window(t, s, apart, w) if w is None else abs(t + apart - s) < w
                )
            ),
        },
    ),
)
SHAPES = ((1, 1), (2, 2), (5, 5), (2, 5), (1, 5), (5, 2))
CAUSAL_MASK = Spec(
    "causal_mask",
    "causal_mask(T, S)",
    (
        *(Case(f"T = {T}, S = {S}", (T, S)) for T, S in SHAPES),
        *(
            Case(f"T = {T}, S = {S}, window {w}", (T, S), {"window": w})
            for T, S, w in ((5, 5, 1), (5, 5, 3), (3, 7, 2), (2, 3, 11), (5, 3, 2))
        ),
    ),
    _mask(_in_window),
    WRONG_MASKS,
    properties=("state",),
)

LENGTH_MASK = Spec(
    "length_mask",
    "length_mask(lengths, max_len)",
    (
        Case("one length", (np.array([2]), 3)),
        Case("three lengths, one of them whole", (np.array([3, 5, 1]), 5)),
        Case("an empty sequence", (np.array([0, 2]), 3)),
    ),
    length_mask,
    mistakes(
        "masks#the-formula",
        {
            "inverted: You marked the padding: True = a real token.": (
                lambda lengths, max_len: ~length_mask(lengths, max_len)
            ),
            "one_more: You let the first token of the padding be seen.": (
                lambda lengths, max_len: length_mask(lengths + 1, max_len)
            ),
            "from_the_end: You hid the beginning: padding stands at the end.": (
                lambda lengths, max_len: length_mask(lengths, max_len)[..., ::-1]
            ),
            "two_axes: You made (B, S): with heads and queries it is (B, 1, 1, S).": (
                lambda lengths, max_len: length_mask(lengths, max_len)[:, 0, 0]
            ),
        },
    ),
    properties=("state", "inputs", "layout"),
)

_ROWS = np.array([[True, False, True], [False, True, True]])
_KEYS = np.array([[[[True, True, False]]], [[[False, True, True]]]])  # (B, 1, 1, S)
COMBINE_MASKS = Spec(
    "combine_masks",
    "combine_masks(*masks)",
    (
        Case("one", (_ROWS,)),
        Case("two of one shape", (_ROWS, ~_ROWS)),
        Case("two shapes", (_ROWS, _KEYS)),
        Case("three, the first missing", (None, _KEYS, _ROWS, _ROWS[:1])),
        Case("none", (None, None)),
    ),
    combine_masks,
    mistakes(
        "masks#the-formula",
        {
            "or: You allow what one of them allows; all must.": _folded(np.logical_or),
            "sum: You added them, which makes numbers of booleans.": _folded(
                lambda a, b: a.astype(int) + b
            ),
            "last: You take the last one alone.": _folded(lambda a, b: b),
        },
    ),
    properties=("state", "inputs", "layout"),
)
