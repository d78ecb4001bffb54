"""Specs of masks: booleans, True = may attend."""

import numpy as np

from tformer.check.spec import Array, Case, Spec


@Spec(
    *(
        Case(f"T = {T}, S = {S}, window {w}", (T, S), {"window": w} if w else {})
        for T, S, w in (
            *((1, 1, 0), (2, 2, 0), (5, 5, 0), (2, 5, 0), (1, 5, 0), (5, 2, 0)),
            *((5, 5, 1), (5, 5, 3), (3, 7, 2), (2, 3, 11), (5, 3, 2)),
        )
    ),
    wrong="""
    # masks#the-formula
    first_on_first: You lined up the first query with the first key: it must be the last
        with the last.
        t + S - T - s → t - s
    diagonal_hidden: You hid a query's own key.
        behind >= 0 → behind > 0
    one_ahead: You let a query see the next key.
        behind >= 0 → behind >= -1
    inverted: You marked what a query may not see: True = may attend.
        = behind >= 0 and behind < reach → = not 0 <= behind < reach
    all_seen: You let every query see every key.
        behind >= 0 and behind < reach → behind < reach + T + S
    only_square: You hide nothing where T and S differ.
        behind >= 0 and → (behind >= 0 or T != S) and
    only_own: You let a query see its own key alone.
        behind >= 0 and behind < reach → behind == 0
    offset_turned: You shifted by T - S; it is S - T.
        t + S - T - s → t + T - S - s
    offset_positive: You shifted by |S - T|, which is wrong where T > S.
        t + S - T - s → t + abs(S - T) - s
    no_empty_rows: Where T > S the first queries see no key; you shift by 0 there.
        t + S - T - s → t + max(S - T, 0) - s
    empty_rows_see_all: Where T > S the first queries see no key; yours see all.
        behind >= 0 and → (behind >= 0 or t < T - S) and
    first_seen_by_all: Where T > S the first queries see no key; yours see the first.
        behind >= 0 and → (behind >= 0 or s == 0) and
    square: Your mask is (T, T): it must be (T, S).
        return seen → return np.tri(T, dtype=bool)
    past_hidden: You hid the keys before the first query: they are the past of all.
        behind >= 0 and → behind >= 0 and s >= S - T and
    sides_exchanged: Your mask is (S, T): its rows are the queries, so it is (T, S).
        return seen → return np.tri(S, T, S - T, dtype=bool)
    sides_exchanged_first: Your mask is (S, T), and lines up the first query with the
        first key: it is (T, S).
        return seen → return np.tri(S, T, dtype=bool)
    square_keys: Your mask is (S, S): it must be (T, S).
        return seen → return np.tri(S, dtype=bool)
    anti_diagonal: Your mask runs the other way along the keys.
        seen[t, s] = → seen[t, S - 1 - s] =
    one_wide: You hide keys that are far away: none asked for a window.
        behind < reach → behind < (window or 2)
    four_wide: You hide keys that lie four or more tokens back.
        behind < reach → behind < (window or 4)
    three_wide: You hide keys that lie three or more tokens back.
        behind < reach → behind < (window or 3)
    two_ahead: You let a query see two keys that come after it.
        behind >= 0 → behind >= -2
    last_two_hidden: You hid a query's own key and the one before it.
        behind >= 0 → behind > 1
    transposed: You let a query see itself and what comes after it.
        behind >= 0 and behind < reach → behind <= 0
    # long-context#one-key-too-many
    window_one_more: You count the keys before the query: its own is one of the window.
        behind < reach → behind <= reach
    window_ignored: You let a query see its whole past.
        and behind < reach →
    window_both_ways: Your window looks ahead too.
        behind >= 0 and behind → (window or behind >= 0) and abs(behind)
    """,
)
def causal_mask(T: int, S: int, *, window: int | None = None) -> Array:
    """Ask of each query and key whether one sees the other."""
    seen, reach = np.zeros((T, S), bool), window or 2 * (T + S)
    for t, s in np.ndindex(T, S):
        behind = t + S - T - s  # the last query stands at the last key
        seen[t, s] = behind >= 0 and behind < reach
    return seen


@Spec(
    Case("one length", (np.array([2]), 3)),
    Case("three lengths, one of them whole", (np.array([3, 5, 1]), 5)),
    Case("an empty sequence", (np.array([0, 2]), 3)),
    wrong="""
    # masks#the-formula
    inverted: You marked the padding: True = a real token.
        j < length → j >= length
    one_more: You let the first token of the padding be seen.
        j < length → j <= length
    from_the_end: You hid the beginning: padding stands at the end.
        j < length → j >= max_len - length
    two_axes: You made (B, S): with heads and queries it is (B, 1, 1, S).
        [:, None, None] →
    """,
)
def length_mask(lengths: Array, max_len: int) -> Array:
    """Ask of each key whether it is a real token."""
    rows = [[j < length for j in range(max_len)] for length in lengths.tolist()]
    return np.array(rows, bool)[:, None, None]  # (B, 1, 1, S)


_ROWS = np.array([[True, False, True], [False, True, True]])
_KEYS = np.array([[[[True, True, False]]], [[[False, True, True]]]])  # (B, 1, 1, S)


@Spec(
    Case("one", (_ROWS,)),
    Case("two of one shape", (_ROWS, ~_ROWS)),
    Case("two shapes", (_ROWS, _KEYS)),
    Case("three, the first missing", (None, _KEYS, _ROWS, _ROWS[:1])),
    Case("none", (None, None)),
    wrong="""
    # masks#the-formula
    or: You allow what one of them allows; all must.
        all(np → any(np
    sum: You added them, which makes numbers of booleans.
        np.zeros(shape, bool) → np.zeros(shape, int)
        all(np → sum(np
    last: You take the last one alone.
        [at] for mask in given → [at] for mask in given[-1:]
    """,
)
def combine_masks(*masks: Array | None) -> Array | None:
    """Allow what all allow, entry by entry."""
    given = [mask for mask in masks if mask is not None]
    if not given:
        return None
    shape = np.broadcast_shapes(*(mask.shape for mask in given))
    combined = np.zeros(shape, bool)
    for at in np.ndindex(*shape):
        combined[at] = all(np.broadcast_to(mask, shape)[at] for mask in given)
    return combined
