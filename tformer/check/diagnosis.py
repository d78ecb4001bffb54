"""Which mistakes explain what a function did: one, one of several, or two at once.

A mistake is named only if its code gives the same numbers in every case, or if what
was seen proves it by itself; or, and this is said, if it explains a part. Otherwise
nothing is named.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, product

import numpy as np

from tformer.check.calling import Case
from tformer.check.evidence import right_of
from tformer.check.general import ALONE, FORMS, Form, formed, named
from tformer.check.in_part import LEAST, best_in_part
from tformer.check.matching import altered
from tformer.check.outcomes import Outcome, difference
from tformer.check.ratios import other_results
from tformer.check.spec import Mistake, Spec, together


@dataclass(frozen=True)
class Diagnosis:
    """The mistakes that were found."""

    mistakes: tuple[Mistake, ...] = ()  # none if it is not known
    together: bool = False  # whether all were made, or one of them
    partly: bool = False  # whether they explain a part of what differs


def wrong_of(spec: Spec, case: Case, *made: Mistake) -> Outcome | None:
    """Ask the code of mistakes, once for each case; None if they exclude each other."""
    key = " + ".join(mistake.id for mistake in made)
    if (key, case) not in spec.wrongs:
        if key not in spec.made:
            try:
                spec.made[key] = together(*made)
            except (ValueError, SyntaxError):
                if len(made) == 1:
                    raise
                spec.made[key] = None
        function = spec.made[key]
        spec.wrongs[key, case] = spec.outcome(function, case) if function else None
    return spec.wrongs[key, case]


class Numbers:
    """The results of a function by case, beside the right ones.

    Args:
        spec: what is right.
        outcomes: what came, by the names of the cases.
        rtol: how far numbers may be apart.
    """

    def __init__(self, spec: Spec, outcomes: Mapping[str, Outcome], rtol: float):
        self.spec, self.rtol = spec, rtol
        cases = [case for case in spec.cases if case.name in outcomes]
        cases.sort(key=lambda case: case.size)
        self.given = {x: (outcomes[x.name], right_of(spec, x)) for x in cases}
        self.wrong = [
            case
            for case, (x, right) in self.given.items()
            if difference(x, right, rtol)
        ]
        # What excludes most is looked at first: where a result came, was wrong, and has
        # many numbers.
        self.order = sorted(
            cases,
            key=lambda x: (bool(self.given[x][0].error), x not in self.wrong, -x.size),
        )

    @cached_property
    def mistakes(self) -> list[Mistake]:
        """Those that the numbers of these cases show."""
        return [
            mistake
            for mistake in self.spec.mistakes
            if mistake.shows == "value"
            if any(self._shown(mistake, case) for case in self.given)
        ]

    def _shown(self, mistake: Mistake, case: Case) -> bool:
        wrong = wrong_of(self.spec, case, mistake)
        right = self.given[case][1]
        return wrong is not None and difference(wrong, right, self.rtol) is not None

    def fit(
        self, expected: Callable[[Case], Outcome | None], *, excused: bool = False
    ) -> bool:
        """Whether all results are those expected; excused, where it does not raise."""
        for case in self.order:
            given, wanted = self.given[case][0], expected(case)
            right = self.given[case][1]
            if excused and given.error:
                continue
            if wanted is None or difference(
                _marked(given, right), _marked(wanted, right), self.rtol
            ):
                return False
            if given.error and wanted.error and _told(given) != _told(wanted):
                return False
        return True

    def explanations(self) -> Iterator[Diagnosis]:
        """Try the simplest first."""
        raised = any(outcome.error for outcome, _ in self.given.values())
        for excused in (False, True) if raised else (False,):
            if excused and all(self.given[case][0].error for case in self.wrong):
                return
            yield Diagnosis(tuple(self._single(excused)))
            yield Diagnosis(tuple(self._formed(excused)))
            if not excused:
                returned = all(not x.error for x, _ in self.given.values())
                whole = returned and other_results(self.spec, self.given, self.rtol)
                yield Diagnosis(tuple(whole or ()))
                nothing = all(_is_nothing(self.given[x][0]) for x in self.wrong)
                yield Diagnosis((named(self.spec, "nothing"),) if nothing else ())
                yield Diagnosis(tuple(self._refused()))
            if all(self.given[case][0].error for case in self.wrong):
                return  # two mistakes may raise there, too, whatever they are
            yield self._of_pairs(self._pairs(excused))
            yield self._of_pairs(self._formed_pairs(excused))
            yield Diagnosis(tuple(self._altered(excused)))
        wrong = partial(wrong_of, self.spec)
        args = self.mistakes, self.given, lambda x, case: wrong(case, x), self.rtol
        yield Diagnosis(tuple(best_in_part(*args)), partly=True)

    def _refused(self) -> Iterator[Mistake]:
        """Name what makes it raise, where nothing else is wrong: a dtype, or axes."""
        errors = [self.given[case][0].error for case in self.wrong]
        if not all(errors):
            return
        if all(re.search("dtype|scalar type", error or "") for error in errors):
            yield named(self.spec, "fixed_dtype")
            return
        for name in self.spec.task().names:
            axes: dict[bool, set[int]] = {True: set(), False: set()}
            for case in self.given:
                x = self.spec.task().inputs(case).get(name)
                axes[case in self.wrong].add(getattr(x, "ndim", -1))
            if len(axes[False]) == 1 and not axes[False] & axes[True]:
                only = axes[False].pop()
                yield named(self.spec, "axes_only", name=name, axes=only)
                return

    def _single(self, excused: bool) -> Iterator[Mistake]:
        for mistake in self.mistakes:
            if self.fit(partial(self._wrong, (mistake,)), excused=excused):
                yield mistake

    def _wrong(self, made: tuple[Mistake, ...], case: Case) -> Outcome | None:
        return wrong_of(self.spec, case, *made)

    def _right_formed(self, form: Form, case: Case) -> Outcome | None:
        return formed(form, self.given[case][1])

    def _wrong_formed(self, form: Form, mistake: Mistake, case: Case) -> Outcome | None:
        wrong = wrong_of(self.spec, case, mistake)
        return (formed(form, wrong) or wrong) if wrong else None

    def _formed(self, excused: bool) -> Iterator[Mistake]:
        for id, form in (ALONE | FORMS).items():
            if self.fit(partial(self._right_formed, form), excused=excused):
                yield named(self.spec, id)
                return

    def _altered(self, excused: bool) -> list[Mistake]:
        came = [x for x, _ in self.given.values() if not x.error]
        if not {a.dtype.kind for x in came for a in x.arrays} <= {*"biuf"}:
            return []  # what is no number is told by its type alone
        if sum(a.size for x in came for a in x.arrays) < LEAST:
            return []
        return altered(self.spec, [*self.given], partial(self.fit, excused=excused))

    def _pairs(self, excused: bool) -> Iterator[tuple[Mistake, Mistake]]:
        for a, b in combinations(self.mistakes, 2):
            same = (a.whole, a.framework) == (b.whole, b.framework)
            if same and self.fit(partial(self._wrong, (a, b)), excused=excused):
                yield a, b

    def _formed_pairs(self, excused: bool) -> Iterator[tuple[Mistake, Mistake]]:
        for mistake, (id, form) in product(self.mistakes, FORMS.items()):
            expected = partial(self._wrong_formed, form, mistake)
            if self.fit(expected, excused=excused):
                yield mistake, named(self.spec, id)

    def _of_pairs(self, pairs: Iterator[tuple[Mistake, Mistake]]) -> Diagnosis:
        """Name a pair; of several what all of them have."""
        found = [*pairs]
        if len(found) == 1:
            return Diagnosis(found[0], together=True)
        common = [x for x in found[0] if all(x in y for y in found)] if found else []
        return Diagnosis(tuple(common))


def diagnose_numbers(numbers: Numbers) -> Diagnosis:
    """Name what explains the numbers."""
    if not numbers.wrong:
        return Diagnosis()
    found = (each for each in numbers.explanations() if each.mistakes)
    return next(found, Diagnosis())


def _marked(outcome: Outcome, right: Outcome) -> Outcome:
    """Write NaN for what is infinite and must not be: which of them is chance."""
    if len(outcome.arrays) != len(right.arrays):
        return outcome
    arrays = [
        np.where(np.isfinite(y) & np.isinf(x), np.nan, x)
        if x.shape == y.shape and x.dtype.kind == y.dtype.kind == "f"
        else x
        for x, y in zip(outcome.arrays, right.arrays, strict=True)
    ]
    return replace(outcome, arrays=tuple(arrays))


def _is_nothing(outcome: Outcome) -> bool:
    return len(outcome.arrays) == 1 and outcome.arrays[0].dtype.kind == "O"


def _told(outcome: Outcome) -> str:
    """Keep of an error what proves something: an expert's words, a missing key."""
    error = (outcome.error or "").partition(" (line")[0]
    if error.startswith("KeyError"):
        return "KeyError"
    return error if "an expert takes" in error else ""
