"""The form of a spec: what a function must do, and how it is known to go wrong."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import getsource, signature
from textwrap import dedent
from typing import Any

import numpy as np

from tformer.check.outcomes import Normal, Outcome, give, read

Function = Callable[..., Any]

# What a property asks, beside the right numbers in the right shape.
PROPERTIES = {
    "state": "a second call with the same input gives the same",
    "inputs": "the inputs stay as they are",
    "layout": "inputs that do not lie side by side in memory give the same",
    "dtype": "the result has the dtype of the inputs",
    "precision": "inputs in a narrower dtype give the numbers of those inputs",
    "gradient": "the gradient of each input is that of the formula",
}


@dataclass(frozen=True)
class Case:
    """One input.

    Args:
        name: what is special about it.
        args: what every function of the spec takes; arrays in float64, bool or int64.
        options: what a function may take; where its signature lacks one of them, the
            case is skipped.
    """

    name: str
    args: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many numbers there are to look at."""
        arrays = (*self.args, *self.options.values())
        return sum(np.size(x) for x in arrays if isinstance(x, np.ndarray))


@dataclass(frozen=True)
class Mistake:
    """A known way to be wrong: the right code with a line or two changed.

    Args:
        id: its short name.
        sentence: what was done, to whoever did it.
        chapter: where it is explained: "masks#the-formula".
        shows: "value", or the property that does not hold though the numbers are right.
        right: the right code.
        framework: whose arrays it takes.
        edits: what is changed in it, each (before, after).
    """

    id: str
    sentence: str
    chapter: str
    shows: str
    right: Function
    framework: str
    edits: tuple[tuple[str, str], ...] = ()

    @property
    def function(self) -> Function:
        """The wrong code: the edited source, run where the right code stands.

        Raises:
            ValueError: what is to be changed does not stand there once.
        """
        source = getsource(self.right)
        for before, after in self.edits:
            if source.count(before) != 1:
                raise ValueError(f"{before!r} must stand once in {self.right.__name__}")
            source = source.replace(before, after)
        namespace = {**vars(sys.modules[self.right.__module__])}
        exec(source, namespace)
        changed: Function = namespace[self.right.__name__]
        return changed


def mistakes(
    right: Function, text: str, framework: str = "numpy"
) -> tuple[Mistake, ...]:
    """Read mistakes from a text.

    A line "# chapter#section" holds for those after it; a mistake is "id: sentence" or,
    of a property, "id property: sentence"; below it, indented, stands what goes on the
    sentence, and each change of a line of `right`, "before → after".
    """
    found: list[Mistake] = []
    chapter = ""
    for line in dedent(text).strip().splitlines():
        before, arrow, after = (part.strip() for part in line.partition("→"))
        if line.startswith("# "):
            chapter = line[2:]
        elif not line.startswith(" "):
            head, _, told = line.partition(": ")
            name, _, shows = head.partition(" ")
            found.append(
                Mistake(name, told, chapter, shows or "value", right, framework)
            )
        elif arrow:
            found[-1] = replace(found[-1], edits=(*found[-1].edits, (before, after)))
        else:
            told = f"{found[-1].sentence} {before}"
            found[-1] = replace(found[-1], sentence=told)
    return tuple(found)


@dataclass(frozen=True)
class Spec:
    """What a function must do, said once for every form of it.

    Args:
        name: of the exercise.
        signature: of the function.
        cases: the inputs.
        oracle: what is right, in plain loops over float64.
        mistakes: the known ways to be wrong.
        properties: names out of `PROPERTIES`.
        dtypes: the narrower ones that "dtype" and "precision" try.
        run: how a function is called with a case, if it is not called once.
        normal: takes from a result what is free to choose, before it is compared.
    """

    name: str
    signature: str
    cases: tuple[Case, ...]
    oracle: Function
    mistakes: tuple[Mistake, ...]
    properties: tuple[str, ...] = tuple(PROPERTIES)
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    run: Function = lambda function, *args, **options: function(*args, **options)
    normal: Normal = lambda x: x

    def inputs(self, case: Case) -> dict[str, Any]:
        """Name what a function is given of a case: as the oracle names it."""
        names = [f"{i}" for i in range(len(case.args))]
        for i, (name, parameter) in enumerate(
            signature(self.oracle).parameters.items()
        ):
            if i < len(names) and parameter.kind is not parameter.VAR_POSITIONAL:
                names[i] = name
        return dict(zip(names, case.args, strict=True)) | dict(case.options)

    def call(self, function: Function, case: Case, inputs: Mapping[str, Any]) -> Any:
        """Call a function with a case, whose values may have been exchanged."""
        values = list(inputs.values())
        args, options = values[: len(case.args)], values[len(case.args) :]
        named = dict(zip(case.options, options, strict=True))
        return self.run(function, *args, **named)

    def outcome(
        self, function: Function, case: Case, inputs: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Call a function, and read what it returns or raises."""
        try:
            with np.errstate(all="ignore"):
                if inputs is None:  # copies: a mistake may write into them
                    named = self.inputs(case).items()
                    inputs = {name: give(x, "numpy") for name, x in named}
                return read(self.call(function, case, inputs), self.normal)
        except Exception as error:  # noqa: BLE001 - whatever a reader's code raises
            first, *_ = str(error).splitlines() or [""]
            return Outcome(error=f"{type(error).__name__}: {first}")

    def right(self, case: Case, inputs: Mapping[str, Any] | None = None) -> Outcome:
        """Ask the oracle."""
        outcome = self.outcome(self.oracle, case, inputs)
        if outcome.error:
            raise RuntimeError(f"the oracle of {self.name}: {outcome.error}")
        return outcome

    def to_json(self) -> str:
        """Write all cases with their expected numbers, for another language.

        A list of objects with `name`, `args`, `options` and `expected`, a list of
        arrays. An array is {"shape": […], "data": […]}, row by row, infinity a string.
        """
        return json.dumps(
            [
                {
                    "name": case.name,
                    "args": [_plain(x) for x in case.args],
                    "options": {name: _plain(x) for name, x in case.options.items()},
                    "expected": [_plain(x) for x in self.right(case).arrays],
                }
                for case in self.cases
            ]
        )


def _plain(x: Any) -> Any:
    """Say a value of a case in lists and numbers."""
    if not isinstance(x, np.ndarray):
        return _plain(x.table) if hasattr(x, "table") else x
    if x.dtype == object:  # of None
        return None
    data = [n if abs(n) < np.inf else str(n) for n in x.ravel().tolist()]
    return {"shape": list(x.shape), "data": data}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    """Draw normal numbers, the same in each run."""
    return np.random.default_rng([*shape, seed]).normal(size=shape)
