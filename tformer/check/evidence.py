"""What a function was seen to do, wherever it ran, and how that differs from the right.

The judge and the diagnosis read nothing else.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from tformer.check.calling import Answer, Array, Call, Case, Function, Task
from tformer.check.outcomes import Outcome, as_numpy, difference
from tformer.check.spec import Spec

# How far numbers may be apart, as a share of the largest: what rounding explains.
TOLERANCES = {"float32": 1e-4, "float16": 4e-3, "bfloat16": 3e-2}
STEP = 1e-5  # of difference quotients


class Difference(NamedTuple):
    """Where a function is not right: in what, on which case, and by how much."""

    kind: str  # "value", "shape", "dead rows", "not finite", "error", or a property
    case: str
    message: str


@dataclass
class Evidence:
    """What a function answered to the calls of a task.

    `answers` may ask only when it is read: what nobody looks at is then not computed.
    """

    spec: Spec
    task: Task
    answers: Mapping[Call, Answer]

    @property
    def framework(self) -> str:
        """Whose arrays it was given."""
        return self.task.framework

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """The numbers in float64, by case."""
        return {x.name: self.answers[Call(x.name)].outcome for x in self.task.cases}

    def differences(self, rtol: float = 1e-5) -> Iterator[Difference]:
        """Find all differences: of state, of numbers, then of the properties."""
        names = [case.name for case in self.task.cases]
        for name in reversed(names):  # another order: what came before differs
            first, again = Call(name), Call(name, again=True)
            if difference(
                self.answers[again].outcome, self.answers[first].outcome, 1e-6
            ):
                said = "called again with the same input, it gives another result"
                yield Difference("state", name, said)
        for name in names:
            if difference(
                self.answers[Call(name, seed=1)].outcome,
                self.answers[Call(name)].outcome,
                1e-6,
            ):
                said = "with another seed and the same input, it gives another result"
                yield Difference("state", name, said)
        for case in self.task.cases:
            right = right_of(self.spec, case)
            if found := difference(self.answers[Call(case.name)].outcome, right, rtol):
                yield Difference(found[0], case.name, found[1])
        for found_in in (self._changed, self._otherwise_given, self._gradients):
            for each in found_in(rtol):
                if each.kind in self.spec.properties:
                    yield each

    def _changed(self, _: float) -> Iterator[Difference]:
        for call in self.task.calls:
            if not (call.dtype != "float64" or call.strided or call.gradient):
                for name in self.answers[call].changed:
                    said = f"it changes its input {name}"
                    yield Difference("inputs", call.case, said)

    def _otherwise_given(self, rtol: float) -> Iterator[Difference]:
        """Look at what another layout and narrower dtypes give."""
        cases = {case.name: case for case in self.task.cases}
        for call in self.task.calls:
            if call.dtype == "float64" and not call.strided:
                continue
            given = self.answers[call].outcome
            right = right_of(self.spec, cases[call.case], call.dtype)
            within = rtol if call.strided else TOLERANCES[call.dtype]
            found = difference(given, right, within)
            if found and call.strided:
                said = f"with inputs that do not lie side by side, {found[1]}"
                yield Difference("layout", call.case, said)
            elif found:
                said = f"in {call.dtype} {found[1]}"
                yield Difference("precision", call.case, said)
            elif not call.strided and given.dtype not in (call.dtype, None):
                said = f"of inputs in {call.dtype} it makes {given.dtype}"
                yield Difference("dtype", call.case, said)

    def _gradients(self, _: float) -> Iterator[Difference]:
        for call in self.task.calls:
            if call.gradient:
                answer = self.answers[call]
                case = next(x for x in self.task.cases if x.name == call.case)
                for said in _wrong_slopes(self.spec, case, answer):
                    yield Difference("gradient", call.case, said)


class _Answers(dict[Call, Answer]):
    """Answers of a function in this process, each asked for when it is first read."""

    def __init__(self, ask: Callable[[Call], Answer]) -> None:
        self.ask = ask

    def __missing__(self, call: Call) -> Answer:
        self[call] = self.ask(call)
        return self[call]


def ask(
    spec: Spec, function: Function, framework: str, cases: Iterable[Case] = ()
) -> Evidence:
    """Ask a function of this process the cases of a spec, the smallest first."""
    task = task_of(spec, framework, cases)
    answers = _Answers(partial(task.answer, function, normal=spec.normal))
    for call in task.calls:
        if not (call.strided or call.gradient) and call.dtype == "float64":
            answers[call]  # in this order: a state that is kept shows by it
    return Evidence(spec, task, answers)


def task_of(spec: Spec, framework: str, cases: Iterable[Case] = ()) -> Task:
    """Say what is asked, with the weights of what gradients are asked of."""
    chosen = sorted(tuple(cases) or spec.cases, key=lambda case: case.size)
    task = spec.task(framework, chosen)
    if not task.gradient:
        return task
    floating = [case for case in chosen if case.floating]
    weights = {case.name: _slopes_of(spec, case).weights for case in floating}
    return replace(task, weights=weights)


def right_of(spec: Spec, case: Case, dtype: str = "float64") -> Outcome:
    """Ask the oracle, once for each case and dtype: of inputs as that dtype rounds."""
    key = case, dtype
    if key not in spec.rights:
        task = spec.task()
        inputs = task.inputs(case)
        if dtype != "float64":
            library = "torch" if dtype == "bfloat16" else "numpy"
            rounded = task.inputs(case, library, dtype)
            arrays = [name for name, x in inputs.items() if isinstance(x, Array)]
            inputs |= {name: as_numpy(rounded[name]) for name in arrays}
        spec.rights[key] = spec.right(case, inputs)
    return spec.rights[key]


@dataclass(frozen=True)
class _Slopes:
    """The gradient of the oracle along one direction of each input."""

    weights: list[Array]  # of the outputs
    along: dict[str, Array] = field(default_factory=dict)
    right: dict[str, float] = field(default_factory=dict)


_SLOPES: dict[Case, _Slopes] = {}  # by case


def _slopes_of(spec: Spec, case: Case) -> _Slopes:
    """Compute (f(x + hv) - f(x - hv)) / 2h, once for each case, with h = `STEP`.

    f is Σ weight · result with random weights, v random, of each input x.
    """
    if found := _SLOPES.get(case):
        return found
    draw = np.random.default_rng(0)
    outputs = right_of(spec, case).arrays
    weights = [draw.normal(size=x.shape) for x in outputs]
    inputs, slopes = spec.task().inputs(case), _Slopes(weights)

    def weighed(outcome: Outcome) -> float:
        pairs = zip(outcome.arrays, weights, strict=True)
        return sum(float((x * weight).sum()) for x, weight in pairs)

    for name, at in inputs.items():
        if isinstance(at, Array) and at.dtype.kind == "f":
            along = slopes.along[name] = np.asarray(draw.normal(size=at.shape))
            above, below = (
                weighed(spec.right(case, {**inputs, name: at + step * along}))
                for step in (STEP, -STEP)
            )
            slopes.right[name] = (above - below) / (2 * STEP)
    _SLOPES[case] = slopes
    return slopes


def _wrong_slopes(spec: Spec, case: Case, answer: Answer) -> Iterator[str]:
    """Compare a function's gradients with those of the oracle; yield what is wrong."""
    if answer.outcome.error:
        yield f"asked for the gradient, it raises {answer.outcome.error}"
        return
    slopes = _slopes_of(spec, case)
    for name, right in slopes.right.items():
        slope = answer.gradients.get(name)
        if slope is None or slope.shape != slopes.along[name].shape:
            yield f"the gradient of {name} is missing"
            continue
        shares = slope * slopes.along[name]
        bound = 1e-4 * max(abs(right), float(np.abs(shares).sum())) + 1e-6
        if not abs(float(shares.sum()) - right) <= bound:  # NaN is wrong, too
            said = f"along one direction it is {shares.sum():.6g}, not {right:.6g}"
            yield f"the gradient of {name} is wrong: {said}"
