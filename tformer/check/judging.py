"""The judge: whether a function does what a spec says, and which mistake it makes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature

import numpy as np

from tformer.check.gradients import wrong_gradient
from tformer.check.outcomes import Outcome, as_numpy, difference, give
from tformer.check.spec import PROPERTIES, Case, Function, Mistake, Spec

# How far numbers may be apart, as a share of the largest: what rounding explains.
TOLERANCES = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True)
class Difference:
    """Where a function is not right: in what, on which case, and by how much.

    `kind` is "value", "shape", "dead rows", "not finite", "error", or a property.
    """

    kind: str
    case: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """Whether a function is right; if not, where, and which known mistake it is.

    `mistakes` has several where all of them give the same numbers, and none where the
    mistake is not known. `skipped` says which cases were left out, and why.
    """

    spec: str
    differs: Difference | None
    mistakes: tuple[Mistake, ...]
    skipped: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether no case and no property shows a difference."""
        return self.differs is None

    def __str__(self) -> str:
        if self.differs is None:
            return "\n".join((f"{self.spec} is right.", *self.skipped))
        where = f"{self.spec} is wrong in the case {self.differs.case!r}"
        known = [f"{x.sentence} See {x.chapter}." for x in self.mistakes]
        return "\n".join((f"{where}: {self.differs.message}.", *known, *self.skipped))


def judge(
    spec: Spec,
    function: Function,
    framework: str = "torch",
    *,
    rtol: float = 1e-5,
    without: Collection[str] = (),
) -> Verdict:
    """Say whether a function does what the spec says, and if not, what it does.

    Args:
        spec: one of `tformer.check.SPECS`.
        function: takes the arguments of `spec.signature`.
        framework: "torch" or "numpy", whose arrays it is given and must return.
        rtol: how far numbers may be from the oracle's, as a share of the largest.
        without: names of cases to leave out, which a function refuses by design.

    Raises:
        ValueError: the framework or a case is unknown, or no case is left.
    """
    if framework not in ("torch", "numpy"):
        raise ValueError(f"framework ({framework!r}) must be 'torch' or 'numpy'")
    cases, skipped = _cases_for(spec, function, without)
    if not cases:
        raise ValueError(f"no case of {spec.name} is left: {'; '.join(skipped)}")
    trial = _Trial(spec, function, framework, cases, rtol)
    found = trial.difference()
    if found is None:
        return Verdict(spec.name, None, (), skipped)
    if found.kind not in PROPERTIES:
        return judge_numbers(spec, trial.outcomes, rtol=rtol, skipped=skipped)
    known = [m for m in spec.mistakes if trial.breaks_as_much(m, found)]
    return Verdict(spec.name, found, tuple(known), skipped)


def judge_numbers(
    spec: Spec,
    outcomes: Mapping[str, Outcome],
    *,
    rtol: float = 1e-5,
    skipped: Sequence[str] = (),
) -> Verdict:
    """Judge the numbers that some engine has computed, by the names of the cases."""
    cases = [case for case in spec.cases if case.name in outcomes]
    found = _first_wrong(spec, cases, outcomes, rtol)
    known = [
        mistake
        for mistake in spec.mistakes
        if found and mistake.shows == "value"
        if _gives(spec, mistake.function, cases, outcomes, rtol)
    ]
    return Verdict(spec.name, found, tuple(known), tuple(skipped))


def _gives(
    spec: Spec,
    function: Function,
    cases: Sequence[Case],
    outcomes: Mapping[str, Outcome],
    rtol: float,
) -> bool:
    """Say whether a function for NumPy gives these numbers in every case."""
    return not any(
        difference(outcomes[case.name], spec.outcome(function, case), rtol)
        for case in cases
    )


def _lacking(function: Function, case: Case) -> list[str]:
    """Name the options of a case that a function does not take."""
    parameters = signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return []
    return [name for name in case.options if name not in parameters]


def _first_wrong(
    spec: Spec, cases: Sequence[Case], outcomes: Mapping[str, Outcome], rtol: float
) -> Difference | None:
    """Find the smallest case whose numbers are not the oracle's."""
    for case in sorted(cases, key=lambda case: case.size):
        right = spec.right(case)
        if found := difference(outcomes[case.name], right, rtol):
            return Difference(found[0], case.name, found[1])
    return None


def _cases_for(
    spec: Spec, function: Function, without: Collection[str]
) -> tuple[list[Case], tuple[str, ...]]:
    """Choose the cases that a function can be asked, the smallest first."""
    unknown = {*without} - {case.name for case in spec.cases}
    if unknown:
        raise ValueError(f"{spec.name} has no case {', '.join(sorted(unknown))}")
    chosen, skipped = [], [f"Skipped: {name}." for name in without]
    for case in spec.cases:
        if lacking := _lacking(function, case):
            skipped.append(f"Skipped: {case.name} (no argument {', '.join(lacking)}).")
        elif case.name not in without:
            chosen.append(case)
    return sorted(chosen, key=lambda case: case.size), tuple(skipped)


class _Trial:
    """A function that is asked the cases of a spec, and what it answers."""

    def __init__(
        self,
        spec: Spec,
        function: Function,
        framework: str,
        cases: list[Case],
        rtol: float,
    ) -> None:
        self.spec, self.function, self.framework = spec, function, framework
        self.cases, self.rtol = cases, rtol
        self.outcomes: dict[str, Outcome] = {}
        self.changed: Difference | None = None

    def difference(self) -> Difference | None:
        """Find the first difference: of state, of numbers, then of the properties."""
        wanted = self.spec.properties
        for case in self.cases:
            self.outcomes[case.name] = self._ask(case)
        for case in reversed(self.cases):  # another order: what came before differs
            told = "called again with the same input, it gives another result"
            if difference(self._ask(case), self.outcomes[case.name], 1e-6):
                return Difference("state", case.name, told)
        found = _first_wrong(self.spec, self.cases, self.outcomes, self.rtol)
        if found or ("inputs" in wanted and self.changed):
            return found or self.changed
        tests = (self._layout, self._dtypes, self._gradients)
        return next((x for test in tests for x in test() if x.kind in wanted), None)

    def breaks_as_much(self, mistake: Mistake, found: Difference) -> bool:
        """Say whether a mistake breaks the same property, in the same way."""
        if mistake.shows != found.kind:
            return False
        if mistake.framework != self.framework:
            return False
        function = mistake.function
        other = _Trial(self.spec, function, self.framework, self.cases, self.rtol)
        return other.difference() == found

    def _ask(self, case: Case, dtype: str = "float64", layout: str = "rows") -> Outcome:
        inputs = self.spec.inputs(case)
        given = {
            name: give(x, self.framework, dtype, layout) for name, x in inputs.items()
        }
        outcome = self.spec.outcome(self.function, case, given)
        for name, x in inputs.items():
            if isinstance(x, np.ndarray) and self.changed is None:
                before = give(x, self.framework, dtype)
                if not np.array_equal(as_numpy(given[name]), as_numpy(before)):
                    told = f"it changes its input {name}"
                    self.changed = Difference("inputs", case.name, told)
        return outcome

    def _layout(self) -> Iterator[Difference]:
        for case in self.cases:
            given, right = self._ask(case, layout="strided"), self.outcomes[case.name]
            if found := difference(given, right, self.rtol):
                told = f"with inputs that do not lie side by side, {found[1]}"
                yield Difference("layout", case.name, told)

    def _dtypes(self) -> Iterator[Difference]:
        for dtype in self.spec.dtypes if self.framework == "torch" else ("float32",):
            for case in self.cases:
                rounded = {
                    name: as_numpy(give(x, self.framework, dtype))
                    if isinstance(x, np.ndarray)
                    else x
                    for name, x in self.spec.inputs(case).items()
                }
                right = self.spec.right(case, rounded)
                given = self._ask(case, dtype)
                if found := difference(given, right, TOLERANCES[dtype]):
                    yield Difference("precision", case.name, f"in {dtype} {found[1]}")
                elif given.dtype not in (dtype, None):
                    told = f"of inputs in {dtype} it makes {given.dtype}"
                    yield Difference("dtype", case.name, told)

    def _gradients(self) -> Iterator[Difference]:
        if "gradient" not in self.spec.properties or self.framework != "torch":
            return
        for case in self.cases:
            told = wrong_gradient(self.spec, self.function, case)
            if told:
                yield Difference("gradient", case.name, told)
