"""The form of a spec: what a function must do, and how it is known to go wrong."""

import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from inspect import getsource, signature
from textwrap import dedent
from typing import TypeVar

import numpy as np

from tformer.check.calling import Array as Array
from tformer.check.calling import Case as Case
from tformer.check.calling import Function as Function
from tformer.check.calling import Task
from tformer.check.outcomes import Normal, Outcome

Oracle = TypeVar("Oracle", bound=Function)

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
class Mistake:
    """A known way to be wrong: the right code with a line or two changed."""

    id: str
    sentence: str  # what was done, to whoever did it
    chapter: str  # where it is explained: "masks#the-formula"
    shows: str  # "value", or the property that does not hold though the numbers do
    right: Function  # the right code of what is changed
    whole: Function  # the right code of the concept, of which `right` may be a part
    framework: str = "numpy"  # whose arrays it takes
    edits: tuple[tuple[str, str], ...] = ()  # each (before, after)

    @property
    def function(self) -> Function:
        """The wrong code: the edited source, run where the right code stands.

        Raises:
            ValueError: what is to be changed does not stand there once.
        """
        return together(self)

    @property
    def sources(self) -> tuple[str, str]:
        """The right code of what is changed, and the wrong one."""
        right = source_of(self.right)
        return right, _edited(right, self)


def _edited(source: str, mistake: Mistake) -> str:
    """Make the changes of a mistake."""
    for before, after in mistake.edits:
        if source.count(before) != 1:
            raise ValueError(f"{before!r} must stand once in {mistake.right.__name__}")
        source = source.replace(before, after)
    return source


def together(*made: Mistake) -> Function:
    """Make the code of several mistakes at once, of one concept.

    Raises:
        ValueError: what one changes does not stand there once, or no more.
    """
    sources: dict[Function, str] = {}
    whole = made[0].whole
    for mistake in made:
        right = mistake.right
        sources[right] = _edited(sources.get(right) or source_of(right), mistake)
    of_whole = sources.pop(whole, None) or source_of(whole)
    parts = {x.__name__: _run(source, x) for x, source in sources.items()}
    return _run(of_whole, whole, parts)


@cache
def source_of(function: Function) -> str:
    """Return the code of a function or class, without decorators."""
    return re.sub(r"\A@.*?^(?=def |class )", "", getsource(function), flags=re.S | re.M)


def _run(
    source: str, original: Function, parts: Mapping[str, Function] | None = None
) -> Function:
    """Define a function anew where the original stands, perhaps with other parts."""
    namespace = {**vars(sys.modules[original.__module__]), **(parts or {})}
    exec(source, namespace)
    defined: Function = namespace[original.__name__]
    return defined


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
            begun = (name, told, chapter, shows or "value", right, right, framework)
            found.append(Mistake(*begun))
        elif arrow:
            found[-1] = replace(found[-1], edits=(*found[-1].edits, (before, after)))
        elif found[-1].edits:  # a long line goes on
            *others, (first, last) = found[-1].edits
            found[-1] = replace(found[-1], edits=(*others, (first, f"{last}{before}")))
        else:
            told = f"{found[-1].sentence} {before}"
            found[-1] = replace(found[-1], sentence=told)
    return tuple(found)


SPECS: dict[str, "Spec"] = {}


class Spec:
    """What a function must do, said once for every form of it; declared on its oracle.

    `cases` are the inputs, `wrong` the known mistakes in the oracle, as `mistakes`
    reads them. `parts` names mistakes in functions that the oracle calls: those of
    their specs, by their ids.
    """

    oracle: Function  # what is right, in plain loops over float64

    def __init__(
        self,
        *cases: Case,
        wrong: str,
        parts: Mapping[str, str] | None = None,
        also: tuple[Mistake, ...] = (),  # in other code, for torch
        name: str = "",  # of the exercise; the oracle's if not given
        properties: Collection[str] = tuple(PROPERTIES),
        dtypes: tuple[str, ...] = ("float32", "bfloat16"),  # narrower ones to try
        run: Function | None = None,  # calls a function with a case, if not once
        normal: Normal = lambda x: x,  # takes from a result what is free to choose
    ) -> None:
        self.cases, self.wrong, self.parts, self.also = cases, wrong, parts or {}, also
        self.name, self.properties, self.dtypes = name, properties, dtypes
        self.run, self.normal = run, normal
        self.rights: dict[tuple[Case, str], Outcome] = {}  # by case and dtype
        self.wrongs: dict[tuple[str, Case], Outcome | None] = {}  # by mistakes, case
        self.made: dict[str, Function | None] = {}  # the code of mistakes

    def __call__(self, oracle: Oracle) -> Oracle:
        """Take the oracle, as a decorator does."""
        self.oracle = oracle
        self.name = self.name or oracle.__name__
        SPECS[self.name] = self
        return oracle

    @cached_property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The known ways to be wrong."""
        of_parts = [
            replace(mistake, whole=self.oracle)
            for part, ids in self.parts.items()
            for mistake in SPECS[part].mistakes
            if mistake.id in ids.split()
        ]
        return *mistakes(self.oracle, self.wrong), *of_parts, *self.also

    def task(self, framework: str = "numpy", cases: Iterable[Case] = ()) -> Task:
        """Say what is asked of a function, all cases if none are given."""
        names = [*signature(self.run or self.oracle).parameters]
        torch = framework == "torch"
        return Task(
            tuple(cases) or self.cases,
            tuple(names[1:] if self.run else names),
            framework,
            self.dtypes if torch else ("float32",),
            torch and "gradient" in self.properties,
            run=self.run,
        )

    def outcome(
        self,
        function: Function,
        case: Case,
        inputs: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Call a function, and read what it returns or raises."""
        return self.task().outcome(function, case, inputs, self.normal)

    def right(self, case: Case, inputs: Mapping[str, object] | None = None) -> Outcome:
        """Ask the oracle."""
        outcome = self.outcome(self.oracle, case, inputs)
        if outcome.error:
            raise RuntimeError(f"the oracle of {self.name}: {outcome.error}")
        return outcome


def draw(*shape: int, seed: int = 0) -> Array:
    """Draw normal numbers, the same in each run."""
    return np.random.default_rng([*shape, seed]).normal(size=shape)
