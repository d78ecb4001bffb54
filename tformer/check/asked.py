"""The exercises of the chapters, as answers/CHAPTER.toml has them.

What is right or a known wrong answer is an expression over `np` and `math`, so that no
number is copied from a page; functions have specs. The pages' own solutions are held
against it.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np

from tformer.check.outcomes import as_numpy
from tformer.check.spec import Array

FOLDER = files("tformer.check") / "answers"
KINDS = ("value", "mask", "choice", "function", "training", "open")
WITHIN = 0.005  # how far a number may be off, as a share of the largest


@dataclass(frozen=True)
class Field:
    """Numbers or booleans that are asked for."""

    asks: str
    answer: str  # an expression; of a training, a bound
    wrong: Mapping[str, str]  # what led to it, by expression
    page: str  # the answer, in the names of the page below its solution
    shown: str  # or how the solution prints it
    percent: bool  # a share may be written as 0.375 or as 37.5
    within: float
    bound: str  # "at least", "at most", or nothing
    rows: tuple[str, ...]  # names, where these are no places
    columns: tuple[str, ...]

    @cached_property
    def right(self) -> Array:
        """The answer."""
        return np.array(eval(self.answer, {"np": np, "math": math}))

    @cached_property
    def known(self) -> list[tuple[Array, str]]:
        """Wrong answers, each with what led to it: more than one thing, perhaps."""
        names = {"np": np, "math": math, "right": self.right}
        found: list[tuple[Array, str]] = []
        for expression, told in self.wrong.items():
            value = np.array(eval(expression, names))
            at = next((i for i, x in enumerate(found) if self.same(value, x[0])), None)
            if at is None:
                found.append((value, told))
            elif told not in found[at][1]:
                both = texts("check")["or"].format(found[at][1], told)
                found[at] = (value, both)
        if self.right.dtype == bool and not self.rows:
            for expression, told in texts("masks").items():
                value = np.array(eval(expression, names))
                others = [self.right, *(x for x, _ in found)]
                if not any(self.same(value, x) for x in others):
                    found.append((value, told))
        return found

    def same(self, given: Array, right: Array) -> bool:
        """Compare: counts and booleans exactly, other numbers within a share."""
        if given.size != right.size or (given.shape != right.shape and right.ndim > 1):
            return False
        x, y = (each.astype(np.float64).ravel() for each in (given, right))
        if self.bound:
            return bool((x >= y if self.bound == "at least" else x <= y).all())
        share = 0.0 if right.dtype.kind in "biu" else self.within
        room = share * np.abs(y).max(initial=0) + 1e-6
        near = [x, x / 100] if self.percent else [x]
        return any(bool((np.abs(each - y) <= room).all()) for each in near)

    def wrong_with(self, answer: object) -> str | None:
        """Say what is wrong with an answer: None if nothing, "" if it is not known."""
        try:
            given = as_numpy(answer)
        except (TypeError, ValueError, RuntimeError):
            given = np.array(None)
        if given.dtype.kind not in "biuf":
            return texts("check")["no_number"].format(self.asks, repr(answer)[:60])
        while given.ndim > self.right.ndim and len(given) == 1:
            given = given[0]  # a mask or weights with axes of batch and heads
        if self.same(given, self.right):
            return None
        known = (told for x, told in self.known if self.same(given, x))
        shapes = (given.shape, self.right.shape)
        unlike = given.shape != self.right.shape and self.right.ndim > 0
        shape = texts("check")["shape"].format(self.asks, *shapes) if unlike else ""
        return next(known, shape)


@dataclass(frozen=True)
class Option:
    """One of the answers to choose from."""

    says: str
    told: str  # why it is right, or what led to it
    right: bool


@dataclass(frozen=True)
class Exercise:
    """An exercise of a chapter."""

    chapter: str
    number: int
    kind: str
    fields: tuple[Field, ...]
    options: tuple[Option, ...]
    asks: str  # what to hand in, in a line
    hint: str  # to an answer that is wrong in an unknown way
    name: str  # of the function, or of the variable in a file
    spec: str  # of a function
    page: str  # what is true, or what stands, below the solution of the page

    @property
    def title(self) -> str:
        """How it is called here."""
        return f"{self.chapter} {self.number}"


def texts(part: str) -> dict[str, str]:
    """Return what is said of every exercise alike."""
    return _texts()[part]


@cache
def _texts() -> dict[str, dict[str, str]]:
    return tomllib.loads((FOLDER / "texts.toml").read_text("utf-8"))


def chapters() -> list[str]:
    """Name the chapters that have exercises."""
    names = sorted(x.name.removesuffix(".toml") for x in FOLDER.iterdir())
    return [name for name in names if name != "texts"]


@cache
def exercises(chapter: str) -> dict[int, Exercise]:
    """Read the exercises of a chapter, by number.

    Raises:
        ValueError: there is no such chapter.
    """
    if chapter not in chapters():
        raise ValueError(f"chapter ({chapter!r}) must be one of {chapters()}")
    tables = tomllib.loads((FOLDER / f"{chapter}.toml").read_text("utf-8"))
    return {int(x): _exercise(chapter, int(x), table) for x, table in tables.items()}


def _exercise(chapter: str, number: int, table: dict[str, object]) -> Exercise:
    """Read a table; where one thing is asked, it stands in it without `fields`."""
    kind = _word(table, "kind")
    if kind not in KINDS:
        raise ValueError(f"{chapter} {number}: kind ({kind!r}) must be one of {KINDS}")
    fields = _tables(table, "fields") or ([table] if "answer" in table else [])
    return Exercise(
        chapter,
        number,
        kind,
        tuple(_field(each) for each in fields),
        _options(table),
        _word(table, "asks"),
        _word(table, "hint"),
        _word(table, "name") or "answer",
        _word(table, "spec"),
        _word(table, "page"),
    )


def _options(table: Mapping[str, object]) -> tuple[Option, ...]:
    """Read what there is to choose from, in an order that tells nothing."""
    options = (
        Option(_word(x, "says"), _word(x, "told"), bool(x.get("right")))
        for x in _tables(table, "options")
    )
    return tuple(sorted(options, key=lambda option: option.says.casefold()))


def _field(table: Mapping[str, object]) -> Field:
    wrong = table.get("wrong", {})
    return Field(
        _word(table, "asks"),
        _word(table, "answer"),
        wrong if isinstance(wrong, dict) else {},
        _word(table, "page"),
        _word(table, "shown"),
        bool(table.get("percent")),
        float(_word(table, "within") or WITHIN),
        _word(table, "bound"),
        tuple(_word(table, "rows").splitlines()),
        tuple(_word(table, "columns").splitlines()),
    )


def _word(table: Mapping[str, object], key: str) -> str:
    return str(table.get(key, "")).strip()


def _tables(table: Mapping[str, object], key: str) -> list[dict[str, object]]:
    given = table.get(key)
    return given if isinstance(given, list) else []
