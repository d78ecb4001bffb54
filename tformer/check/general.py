"""Mistakes that any function can make: what a right result looks like after them."""

from collections.abc import Callable
from dataclasses import replace
from types import EllipsisType

import numpy as np

from tformer.check.calling import Array
from tformer.check.outcomes import Outcome
from tformer.check.spec import Mistake, Spec, mistakes

# As a spec's mistakes, without code; what is explained at "-" is explained where the
# spec's first mistake is.
SENTENCES = """
# -
transposed: The last two axes of your result have changed places.
heads_and_time: Your result has time before heads: it is (B, H, T, …), not (B, T, H,
    …).
heads_joined: You put the heads side by side: each keeps its axis here.
axis_in_front: Your result has an axis too many in front.
axes_in_front: Your result has two axes too many in front.
axis_behind: Your result has an axis too many at its end.
axis_lost: Your result lacks its first axis: that of the batch must stay.
squeezed: Axes of size 1 are missing from your result.
flat: Your result is flat: give it the shape that is asked for.
first_everywhere: You computed the first row of the batch, and gave it to all.
zeros: Your result is 0 throughout.
ones: Your result is 1 throughout.
empty: Your result is not a number throughout.
negative: Your result has the other sign.
reversed: Your result runs backwards along its last axis.
upside_down: Your result runs backwards along its last axis but one.
row_late: The rows of your result stand one too late.
row_early: The rows of your result stand one too early.
no_signs: Your result has lost its signs.
cut_at_zero: Your result is cut off at 0.
cut_to_whole: Your result is cut to whole numbers.
# notation#five-conventions
inverted: You marked what is to be hidden: True = may attend.
numbers: You return numbers: it must be booleans.
inverted_numbers: Your mask is of numbers, and 1 is what it hides; it is boolean,
    True = may attend.
added_mask: Your mask is to be added, 0 and a large negative number; it is boolean
    here.
# -
probabilities: You return probabilities: it must be logits.
exponential: Your result is exp of what it must be.
logarithm: Your result is the logarithm of what it must be.
returns_input: You return {name} as it came.
input_added: You added {name} to the result: that is done outside.
more_results: You return more than the result: return it alone.
other_order: Your results stand in another order.
scaled: Your result is {c} times what it must be.
scaled_by: Your result is {c} times what it must be, n the size of {name} along
    axis {axis}.
shifted: Your result is larger by {c} everywhere.
# attention#sixteen-bits
fixed_dtype: You make arrays of one dtype: take that of the input.
rounded: Your numbers are near, but rounded: you compute in half precision.
# -
nothing: You return nothing: a `return` is missing, or is not reached.
token_axis_lost: Your result lacks an axis of length 1, the last but one.
axes_only: Your function takes {name} with {axes} axes only: any number may come.
first_head_only: Only the first head of the first text is filled: the loop is left.
first_row_only: Only the first row of your result is filled: the loop is left.
last_entry_empty: The last entry of your result stays empty: a loop ends too early.
first_only: Only the first entry of your result is filled.
more_rows: Your result has more rows than are asked for; the last are right.
last_row_empty: The last row of your result stays empty: a loop ends too early.
last_number_empty: The last number of each row stays empty: a loop ends too early.
altered: Your numbers are those of the formula with the line `{after}` in place of
    `{before}`.
altered_throughout: Your numbers are those of the formula with `{after}` in place of
    `{before}` throughout.
for_infinity: You put {c} where -inf must stand.
"""


def named(spec: Spec, id: str, texts: str = SENTENCES, **words: object) -> Mistake:
    """Name a general mistake, in the spec's own words if it has any."""
    for mistake in spec.mistakes:
        if mistake.id == id:
            return mistake
    found = next(x for x in mistakes(spec.oracle, texts) if x.id == id)
    chapter = spec.mistakes[0].chapter if found.chapter == "-" else found.chapter
    return replace(found, sentence=found.sentence.format(**words), chapter=chapter)


Form = Callable[[Array], Array | None]


def _swapped(x: Array, one: int, other: int, axes: int = 0) -> Array | None:
    long_enough = x.ndim == axes if axes else x.ndim > 1
    return np.swapaxes(x, one, other) if long_enough else None


def _joined(x: Array) -> Array | None:
    if x.ndim != 4:
        return None
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)


def _of_booleans(form: Form) -> Form:
    return lambda x: form(x) if x.dtype.kind == "b" else None


def _of_floats(form: Form) -> Form:
    return lambda x: form(x) if x.dtype.kind == "f" else None


def _shares(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _emptied(x: Array, at: slice | tuple[EllipsisType | slice, ...]) -> Array:
    """Leave a part as it is before it is filled: 0, or -inf where that hides."""
    hides = x.dtype.kind == "f" and bool(np.isneginf(x).any())
    left = x.copy()
    left[at] = -np.inf if hides else 0
    return left


# What a result of the right numbers, or of a known mistake's, may have become.
FORMS: dict[str, Form] = {
    "transposed": lambda x: _swapped(x, -1, -2),
    "heads_and_time": lambda x: _swapped(x, 1, 2, 4),
    "heads_joined": _joined,
    "axis_in_front": lambda x: x[None],
    "axes_in_front": lambda x: x[None, None],
    "axis_behind": lambda x: x[..., None],
    "axis_lost": lambda x: x[0] if x.ndim and len(x) else None,
    "token_axis_lost": lambda x: (
        x[..., 0, :] if x.ndim > 1 and x.shape[-2] == 1 else None
    ),
    "squeezed": lambda x: np.squeeze(x),
    "flat": lambda x: x.ravel(),
    "inverted": _of_booleans(lambda x: ~x),
    "numbers": _of_booleans(lambda x: x.astype(float)),
    "inverted_numbers": _of_booleans(lambda x: 1.0 - x),
    "negative": _of_floats(lambda x: -x),
    "reversed": lambda x: x[..., ::-1] if x.ndim else None,
    "upside_down": lambda x: x[..., ::-1, :] if x.ndim > 1 else None,
    "row_late": lambda x: np.roll(x, 1, -2) if x.ndim > 1 else None,
    "row_early": lambda x: np.roll(x, -1, -2) if x.ndim > 1 else None,
    "no_signs": _of_floats(np.abs),
    "cut_at_zero": _of_floats(lambda x: np.maximum(x, 0)),
    "cut_to_whole": _of_floats(np.trunc),
    "probabilities": _of_floats(lambda x: _shares(x) if x.ndim and x.size else None),
    "exponential": _of_floats(lambda x: np.exp(x)),
    "logarithm": _of_floats(lambda x: np.log(x)),
}
# What says nothing of how the rest was computed.
ALONE: dict[str, Form] = {
    "zeros": lambda x: np.zeros(x.shape, x.dtype),
    "ones": lambda x: np.ones(x.shape, x.dtype),
    "empty": _of_floats(lambda x: x * np.nan),
    "first_everywhere": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else None,
    "first_only": lambda x: _emptied(x, np.s_[1:]) if x.ndim else None,
    "first_head_only": lambda x: (
        _emptied(_emptied(x, np.s_[1:]), np.s_[:, 1:]) if x.ndim > 3 else None
    ),
    "first_row_only": lambda x: (
        _emptied(x.reshape(-1, x.shape[-1]), np.s_[1:]).reshape(x.shape)
        if x.ndim > 1 and x.size
        else None
    ),
    "last_entry_empty": lambda x: _emptied(x, np.s_[-1:]) if x.ndim else None,
    "last_number_empty": lambda x: _emptied(x, np.s_[..., -1:]) if x.ndim else None,
    "last_row_empty": lambda x: _emptied(x, np.s_[..., -1:, :]) if x.ndim > 1 else None,
}


def formed(form: Form, right: Outcome) -> Outcome | None:
    """Change a result as a form says; None if it does not apply."""
    if right.error:
        return None
    with np.errstate(all="ignore"):
        arrays = [form(x) for x in right.arrays]
    if any(x is None for x in arrays):
        return None
    return Outcome(tuple(x for x in arrays if x is not None))
