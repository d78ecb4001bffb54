"""Which mistake explains a part of what differs, where none explains all of it.

Code often has one known mistake and something else beside it. Where two whole cases, or
most of the wrong numbers, are the mistake's to the last digit, and nothing that is
right speaks against it, it was made; the rest is not known.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from tformer.check.calling import Array, Case
from tformer.check.outcomes import Outcome
from tformer.check.spec import Mistake

LEAST = 3  # numbers that must be the mistake's
WHOLE = 12  # so many in two whole cases are enough, whatever the other cases give
Given = Mapping[Case, tuple[Outcome, Outcome]]  # what came, and what must come
WrongOf = Callable[[Mistake, Case], Outcome | None]  # asks the code of a mistake


def best_in_part(
    known: list[Mistake], given: Given, wrong_of: WrongOf, rtol: float
) -> Iterator[Mistake]:
    """Name what explains most of the wrong numbers; several if they explain as many."""
    counts = [_explained(mistake, given, wrong_of, rtol) for mistake in known]
    for mistake, count in zip(known, counts, strict=True):
        if count and count == max(counts):
            yield mistake


def _explained(mistake: Mistake, given: Given, wrong_of: WrongOf, rtol: float) -> int:
    """Count the wrong numbers that are the mistake's; 0 if they prove nothing."""
    known, wrong, whole = 0, 0, []
    for case, (came, right) in given.items():
        made = None if came.error else wrong_of(mistake, case)
        if made is None:
            continue  # where it raises, nothing is known
        same, off, against = _compared(came, right, made, rtol)
        if against:
            return 0
        known, wrong = known + same, wrong + off
        whole += [same] * (0 < same == off)
    proven = 2 * known > wrong or (len(whole) > 1 and sum(whole) >= WHOLE)
    return known if known >= LEAST and proven else 0


def _compared(
    came: Outcome, right: Outcome, made: Outcome, rtol: float
) -> tuple[int, int, int]:
    """Count wrong numbers that are the mistake's, all wrong, and right ones against it.

    What is 0 proves nothing: it is so where no key may be seen, or nothing is filled.
    """
    same, off, against = 0, 0, 0
    shapes = [tuple(x.shape for x in each.arrays) for each in (came, right, made)]
    kinds = {x.dtype.kind for each in (came, right, made) for x in each.arrays}
    if shapes[0] != shapes[1] or kinds != {"f"}:
        return 0, sum(y.size for y in right.arrays), 0
    zeros = tuple(np.zeros(y.shape) for y in right.arrays)
    others = made.arrays if shapes[2] == shapes[1] else zeros
    for x, y, z in zip(came.arrays, right.arrays, others, strict=True):
        bound = rtol * np.abs(y[np.isfinite(y)]).max(initial=0)
        wrong, apart = _apart(x, y, bound), _apart(z, y, bound)
        its = wrong & ~_apart(x, z, bound) & np.isfinite(x) & (x != 0)
        same, off = same + int(its.sum()), off + int(wrong.sum())
        against += int((~wrong & apart & (y != 0)).sum())
    return same, off, against


def _apart(x: Array, y: Array, bound: float) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(~((np.abs(x - y) <= bound) | (x == y)))
