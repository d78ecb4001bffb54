"""The judge: whether a function does what a spec says, and which mistake it makes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from itertools import product
from typing import NamedTuple

import numpy as np

from tformer.check.outcomes import Outcome, as_numpy, difference
from tformer.check.spec import PROPERTIES, Case, Function, Mistake, Spec

# How far numbers may be apart, as a share of the largest: what rounding explains.
TOLERANCES = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
STEP = 1e-5  # of difference quotients


class Difference(NamedTuple):
    """Where a function is not right: in what, on which case, and by how much."""

    kind: str  # "value", "shape", "dead rows", "not finite", "error", or a property
    case: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """Whether a function is right; if not, where, and which known mistake it is."""

    spec: str
    differs: Difference | None
    mistakes: tuple[Mistake, ...]  # none if unknown; all that give the same numbers

    @property
    def right(self) -> bool:
        """Whether no case and no property shows a difference."""
        return self.differs is None

    def __str__(self) -> str:
        if self.differs is None:
            return f"{self.spec} is right."
        where = f"{self.spec} is wrong in the case {self.differs.case!r}"
        known = [f"{x.sentence} See {x.chapter}." for x in self.mistakes]
        return "\n".join((f"{where}: {self.differs.message}.", *known))


def judge(
    spec: Spec, function: Function, framework: str = "torch", *, rtol: float = 1e-5
) -> Verdict:
    """Say whether a function does what the spec says, and if not, what it does.

    Args:
        spec: one of `tformer.check.SPECS`.
        function: takes the arguments of the spec's oracle. Cases with an option that
            its signature lacks are left out.
        framework: "torch" or "numpy", whose arrays it is given and must return.
        rtol: how far numbers may be from the oracle's, as a share of the largest.

    Raises:
        ValueError: the framework is unknown, or no case is left.
    """
    if framework not in ("torch", "numpy"):
        raise ValueError(f"framework ({framework!r}) must be 'torch' or 'numpy'")
    taken = signature(function).parameters
    every = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    cases = [case for case in spec.cases if every or taken.keys() >= {*case.options}]
    cases.sort(key=lambda case: case.size)
    if not cases:
        raise ValueError(f"the function takes the options of no case of {spec.name}")
    trial = _Trial(spec, function, framework, cases, rtol)
    found = trial.difference()
    if found is None or found.kind not in PROPERTIES:
        return judge_numbers(spec, trial.outcomes, rtol=rtol)
    known = [
        mistake
        for mistake in spec.mistakes
        if (mistake.shows, mistake.framework) == (found.kind, framework)
        if _Trial(spec, mistake.function, framework, cases, rtol).difference() == found
    ]
    return Verdict(spec.name, found, tuple(known))


def judge_numbers(
    spec: Spec, outcomes: Mapping[str, Outcome], *, rtol: float = 1e-5
) -> Verdict:
    """Judge the numbers that some engine has computed, by the names of the cases."""
    found = _first_difference(spec, spec.oracle, outcomes, rtol)
    known = [
        mistake
        for mistake in spec.mistakes
        if found and mistake.shows == "value"
        if not _first_difference(spec, mistake.function, outcomes, rtol)
    ]
    return Verdict(spec.name, found, tuple(known))


def _first_difference(
    spec: Spec, function: Function, outcomes: Mapping[str, Outcome], rtol: float
) -> Difference | None:
    """Compare numbers with those of a function, the oracle or one that is wrong."""
    for case in sorted(spec.cases, key=lambda case: case.size):
        if case.name in outcomes:
            right = spec.outcome(function, case)
            if found := difference(outcomes[case.name], right, rtol):
                return Difference(found[0], case.name, found[1])
    return None


@dataclass
class _Trial:
    """A function that is asked the cases of a spec, and what it answers."""

    spec: Spec
    function: Function
    framework: str
    cases: list[Case]
    rtol: float
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    changed: Difference | None = None  # the first input that did not stay

    def difference(self) -> Difference | None:
        """Find the first difference: of state, of numbers, then of the properties."""
        for case in self.cases:
            self.outcomes[case.name], _ = self._ask(case)
        for case in reversed(self.cases):  # another order: what came before differs
            if difference(self._ask(case)[0], self.outcomes[case.name], 1e-6):
                told = "called again with the same input, it gives another result"
                return Difference("state", case.name, told)
        found = _first_difference(self.spec, self.spec.oracle, self.outcomes, self.rtol)
        broken = (x for x in self._broken() if x.kind in self.spec.properties)
        return found or next(broken, None)

    def _broken(self) -> Iterator[Difference]:
        if self.changed:
            yield self.changed
        for case in self.cases:
            given, rounded = self._ask(case, strided=True)
            if found := difference(given, self.spec.right(case, rounded), self.rtol):
                told = f"with inputs that do not lie side by side, {found[1]}"
                yield Difference("layout", case.name, told)
        floating = [c for c in self.cases if any(x.dtype.kind == "f" for x in c.arrays)]
        dtypes = self.spec.dtypes if self.framework == "torch" else ("float32",)
        for dtype, case in product(dtypes, floating):
            given, rounded = self._ask(case, dtype)
            if found := difference(
                given, self.spec.right(case, rounded), TOLERANCES[dtype]
            ):
                yield Difference("precision", case.name, f"in {dtype} {found[1]}")
            elif given.dtype not in (dtype, None):
                told = f"of inputs in {dtype} it makes {given.dtype}"
                yield Difference("dtype", case.name, told)
        if self.framework == "torch" and "gradient" in self.spec.properties:
            for case in floating:
                for told in _wrong_gradients(self.spec, self.function, case):
                    yield Difference("gradient", case.name, told)

    def _ask(
        self, case: Case, dtype: str = "float64", *, strided: bool = False
    ) -> tuple[Outcome, dict[str, object]]:
        """Call the function; return what it gives, and what it was given, in NumPy."""
        given = self.spec.inputs(case, self.framework, dtype, strided=strided)
        right = self.spec.inputs(case)
        arrays = [name for name, x in right.items() if isinstance(x, np.ndarray)]
        right |= {name: as_numpy(given[name]) for name in arrays}
        outcome = self.spec.outcome(self.function, case, given)
        for name in arrays if self.changed is None else []:
            if not np.array_equal(as_numpy(given[name]), np.asarray(right[name])):
                told = f"it changes its input {name}"
                self.changed = Difference("inputs", case.name, told)
        return outcome, right


def _wrong_gradients(spec: Spec, function: Function, case: Case) -> Iterator[str]:
    """Compare torch's gradients of a function with those of the oracle.

    Of every input x, along one direction v: Σ w · (f(x + hv) - f(x - hv)) / 2h, with
    random weights w of the outputs, h = `STEP`. Yields what is wrong.
    """
    import torch

    inputs, given = spec.inputs(case), spec.inputs(case, "torch")
    leaves = {
        name: x.requires_grad_()
        for name, x in given.items()
        if isinstance(x, torch.Tensor) and x.is_floating_point()
    }
    returned = spec.call(function, case, given)
    parts = returned if isinstance(returned, tuple | list) else [returned]
    outputs = [x for x in parts if isinstance(x, torch.Tensor)]
    draw = np.random.default_rng(0)
    weights = [draw.normal(size=tuple(x.shape)) for x in outputs]
    total = torch.zeros((), dtype=torch.float64)
    for x in leaves.values():  # the slope of what is cut off is 0
        total = total + 0 * x.sum()
    for x, weight in zip(outputs, weights, strict=True):
        total = total + (x * torch.tensor(weight)).sum()

    def weighed(outcome: Outcome) -> float:
        pairs = zip(outcome.arrays, weights, strict=True)
        return sum(float((x * weight).sum()) for x, weight in pairs)

    for name, leaf in leaves.items():
        (slope,) = torch.autograd.grad(total, leaf, retain_graph=True)
        at = np.asarray(inputs[name])
        along = np.asarray(draw.normal(size=at.shape))
        above, below = (
            weighed(spec.right(case, {**inputs, name: at + step * along}))
            for step in (STEP, -STEP)
        )
        right = (above - below) / (2 * STEP)
        shares = as_numpy(slope) * along
        bound = 1e-4 * max(abs(right), float(np.abs(shares).sum())) + 1e-6
        if not abs(float(shares.sum()) - right) <= bound:  # NaN is wrong, too
            told = f"along one direction it is {shares.sum():.6g}, not {right:.6g}"
            yield f"the gradient of {name} is wrong: {told}"
