"""How a function is called with the cases of a spec, and what is kept of its answers.

It is the same here and in the process of a reader's file, so that nothing here leads to
an oracle.
"""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from traceback import extract_tb
from typing import NamedTuple

import numpy as np

from tformer.check.chapter_calls import CHAPTER_RUNS
from tformer.check.outcomes import Normal, Outcome, as_numpy, give, read

Array = np.ndarray
LONGEST = 300  # letters of an error that are told
Function = Callable[..., object]


@dataclass(frozen=True, eq=False)
class Case:
    """One input; it equals itself alone."""

    name: str  # what is special about it
    args: tuple[object, ...]  # what every function takes; floats in float64
    options: Mapping[str, object] = field(default_factory=dict)  # what it may take
    exercise: bool = True  # whether a reader's function is asked it, too

    @property
    def arrays(self) -> list[Array]:
        """Those of all inputs."""
        values = (*self.args, *self.options.values())
        return [x for x in values if isinstance(x, Array)]

    @property
    def floating(self) -> bool:
        """Whether a dtype can be chosen."""
        return any(x.dtype.kind == "f" for x in self.arrays)

    @property
    def size(self) -> int:
        """How many numbers there are to look at."""
        return sum(x.size for x in self.arrays)


class Call(NamedTuple):
    """One call of a function."""

    case: str
    dtype: str = "float64"
    strided: bool = False  # the inputs lie column by column, with gaps
    again: bool = False  # after all cases were asked once, in the other order
    gradient: bool = False  # with what the gradient is asked of
    seed: int = 0  # of what draws at random


@dataclass(frozen=True)
class Answer:
    """What a call gave."""

    outcome: Outcome
    changed: tuple[str, ...] = ()  # the inputs that did not stay as they were
    gradients: Mapping[str, Array] = field(default_factory=dict)  # by input


@dataclass(frozen=True)
class Task:
    """What is asked of a function, without what is right."""

    cases: tuple[Case, ...]
    names: tuple[str, ...]  # of the arguments
    framework: str  # "torch" or "numpy", whose arrays it is given
    dtypes: tuple[str, ...] = ()  # narrower ones to try
    gradient: bool = False  # whether it is asked
    weights: Mapping[str, list[Array]] = field(default_factory=dict)
    run: Function | None = None  # calls a function with a case, if not once
    file: str = ""  # in which it stands, to say in which line it raises

    @property
    def calls(self) -> Iterator[Call]:
        """All calls, in the order in which they are made."""
        names = [case.name for case in self.cases]
        yield from (Call(name) for name in names)
        yield from (Call(name, again=True) for name in reversed(names))
        yield from (Call(name, seed=1) for name in names)
        yield from (Call(name, strided=True) for name in names)
        floating = [case.name for case in self.cases if case.floating]
        yield from (Call(case, dtype) for dtype, case in product(self.dtypes, floating))
        if self.gradient:
            asked = [name for name in floating if name in self.weights]
            yield from (Call(name, gradient=True) for name in asked)

    def inputs(
        self,
        case: Case,
        framework: str = "numpy",
        dtype: str = "float64",
        *,
        strided: bool = False,
    ) -> dict[str, object]:
        """Name what a function is given of a case, each time anew, as `give` does."""
        more = [f"input {i}" for i in range(len(self.names), len(case.args))]
        values = dict(zip((*self.names, *more), case.args, strict=False))
        return {
            name: give(x, framework, dtype, strided=strided)
            for name, x in (values | dict(case.options)).items()
        }

    def call(
        self, function: Function, case: Case, inputs: Mapping[str, object]
    ) -> object:
        """Call a function with the inputs of a case."""
        values = list(inputs.values())
        args, options = values[: len(case.args)], values[len(case.args) :]
        named = dict(zip(case.options, options, strict=True))
        if self.run is not None:
            return self.run(function, *args, **named)
        return function(*args, **named)

    def outcome(
        self,
        function: Function,
        case: Case,
        inputs: Mapping[str, object] | None = None,
        normal: Normal = lambda x: x,
        caught: type[BaseException] = Exception,
    ) -> Outcome:
        """Call a function, and read what it returns or raises."""
        try:
            with np.errstate(all="ignore"):
                inputs = self.inputs(case) if inputs is None else inputs
                return read(self.call(function, case, inputs), normal)
        except caught as error:
            return Outcome(error=told(error, self.file))

    def answer(
        self,
        function: Function,
        call: Call,
        normal: Normal = lambda x: x,
        caught: type[BaseException] = Exception,
    ) -> Answer:
        """Make one call."""
        case = next(case for case in self.cases if case.name == call.case)
        if call.gradient:
            try:
                return Answer(Outcome(), (), self.gradients(function, case))
            except caught as error:
                return Answer(Outcome(error=told(error, self.file)))
        given = self.inputs(case, self.framework, call.dtype, strided=call.strided)
        original = self.inputs(case)
        arrays = [name for name, x in original.items() if isinstance(x, Array)]
        before = {name: as_numpy(given[name]) for name in arrays}
        with _seeded(call.seed):
            outcome = self.outcome(function, case, given, normal, caught)
        changed = (
            name
            for name in arrays
            if not np.array_equal(as_numpy(given[name]), before[name])
        )
        return Answer(outcome, tuple(changed))

    def gradients(self, function: Function, case: Case) -> dict[str, Array]:
        """Ask torch for the gradient of Σ weight · result with respect to each input.

        Raises:
            ValueError: the result has no gradient, or another shape than it must.
        """
        import torch

        given = self.inputs(case, "torch")
        leaves = {
            name: x.requires_grad_()
            for name, x in given.items()
            if isinstance(x, torch.Tensor) and x.is_floating_point()
        }
        returned = self.call(function, case, given)
        parts = returned if isinstance(returned, tuple | list) else [returned]
        outputs = [x for x in parts if isinstance(x, torch.Tensor)]
        if len(outputs) != len(self.weights[case.name]):
            raise ValueError("what it returns is no tensor, and has no gradient")
        total = torch.zeros((), dtype=torch.float64)
        for x in leaves.values():  # the slope of what is cut off is 0
            total = total + 0 * x.sum()
        for x, weight in zip(outputs, self.weights[case.name], strict=True):
            total = total + (x * torch.tensor(weight)).sum()
        slopes = torch.autograd.grad(total, [*leaves.values()])
        return {name: as_numpy(x) for name, x in zip(leaves, slopes, strict=True)}


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the generators that all share, and put them back as they were."""
    torch = sys.modules.get("torch")  # what is not imported draws nothing
    before = random.getstate(), np.random.get_state()
    drawn = torch.get_rng_state() if torch else None
    random.seed(seed)
    np.random.seed(seed)
    if torch:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])
        if torch:
            torch.set_rng_state(drawn)


def told(error: BaseException, file: str = "") -> str:
    """Say in a line what was raised, and in which line of the reader's file."""
    said = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])[:LONGEST]
    lines = [x.lineno for x in extract_tb(error.__traceback__) if x.filename == file]
    place = f" (line {lines[-1]})" if lines else ""
    return f"{said}{place}"


def in_pieces(
    step: Function, query: Array, key: Array, value: Array, sizes: list[int]
) -> tuple[object, ...]:
    """Read two texts in turn, each with a cache of its own."""
    outputs, begin = [], 0
    first: dict[str, object] = {}
    second: dict[str, object] = {}
    for size in sizes:
        q, k, v = (x[:, :, begin : begin + size] for x in (query, key, value))
        outputs += [step(q, k, v, first), step(k, q, v, second)]
        begin += size
    return tuple(outputs)


# What calls a function, if it is not called once; by name, as another process is told.
RUNS = {run.__name__: run for run in (in_pieces, *CHAPTER_RUNS)}
