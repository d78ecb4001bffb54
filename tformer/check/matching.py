"""Which formulas with one thing altered give a reader's numbers.

All alterations are run, not the first ones alone: where several give the numbers and
are not the same function, one of them was made. So that they show themselves as the
same, they are run on other numbers, too.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from inspect import signature
from warnings import catch_warnings, simplefilter

import numpy as np

from tformer.check.altering import Alteration, alterations
from tformer.check.calling import Array, Case, Task
from tformer.check.formulas import CHOOSING, FORMULAS
from tformer.check.general import named
from tformer.check.outcomes import Outcome, difference
from tformer.check.spec import Mistake, Spec

SECONDS = 8.0  # of work; a page's Python is slower than a shell's
OFTEN = 50  # alterations between two looks at the clock
KEPT = 1 << 13  # outcomes of the last ones, of a kilobyte or two each
MOST = 3  # that are told as "one of"; more prove nothing
CHANGE = 0.03  # of the other numbers, as a share: what adds up to 1 does so nearly

Fits = Callable[[Callable[[Case], Outcome | None]], bool]


@lru_cache(KEPT)
def outcome_of(spec: Spec, alteration: Alteration, case: Case) -> Outcome:
    """Ask an altered formula."""
    return _task(spec).outcome(alteration.function, case, normal=spec.normal)


@cache
def _task(spec: Spec) -> Task:
    return spec.task()


def altered(spec: Spec, cases: list[Case], fits: Fits) -> list[Mistake]:
    """Name what is altered in a formula that gives all numbers of a function.

    Args:
        spec: what is right.
        cases: that were asked.
        fits: says whether what a formula gives in each case is what came.

    Returns:
        One; several, if they cannot be told apart; none if they are too many, or if
        no formula is altered so, of those that there was time for.
    """
    formula = FORMULAS.get(spec.name)
    if formula is None:
        return []
    known = signature(formula).parameters.keys()
    if any(case.options.keys() - known for case in cases):
        return []
    last = time.process_time() + SECONDS
    found: list[Alteration] = []
    with catch_warnings():
        simplefilter("ignore")  # of empty slices, of which the reader has written none
        for i, each in enumerate(alterations(formula, spec.name in CHOOSING)):
            if i % OFTEN == 0 and time.process_time() > last:
                break
            if fits(partial(outcome_of, spec, each)):
                found.append(each)
        different = _different(spec, cases, found)
    return [_named(spec, each) for each in different if len(different) <= MOST]


def _named(spec: Spec, each: Alteration) -> Mistake:
    id = "altered_throughout" if each.throughout else "altered"
    return named(spec, id, before=each.before, after=each.told)


def _different(
    spec: Spec, cases: list[Case], found: list[Alteration]
) -> list[Alteration]:
    """Keep one of those that give the same on other numbers, the simplest."""
    kept: list[tuple[Alteration, list[Outcome]]] = []
    others = [*_others(cases)] if len(found) > 1 else []
    for each in found:
        came = [outcome_of(spec, each, case) for case in others]
        if not any(_same(came, known) for _, known in kept):
            kept.append((each, came))
    return [each for each, _ in kept]


def _same(one: list[Outcome], two: list[Outcome]) -> bool:
    return not any(difference(x, y, 1e-9) for x, y in zip(one, two, strict=True))


def _others(cases: list[Case]) -> Iterator[Case]:
    """Change the numbers of cases; where there are no arrays, the whole numbers."""
    draw = np.random.default_rng(0)

    def changed(x: object, alone: bool) -> object:
        if isinstance(x, Array) and x.dtype.kind == "f":
            return x * (1 + CHANGE * draw.normal(size=x.shape))
        if isinstance(x, float):
            return x * (1 - CHANGE)
        return x + 1 if alone and type(x) is int else x

    for case in cases:
        alone = not case.arrays
        yield replace(case, args=tuple(changed(x, alone) for x in case.args))
