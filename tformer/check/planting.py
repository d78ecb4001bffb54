"""Whole solutions with one known mistake in each, for readers to find and mend.

The right code is a formula of `formulas`, or the oracle where there is none or `faults`
lists no change of it; a mistake is a change listed there, or its spec's own.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import isfunction
from itertools import groupby
from sys import modules

from tformer.check.calling import Function
from tformer.check.faults import FAULTS
from tformer.check.formulas import FORMULAS
from tformer.check.spec import Mistake, Spec, source_of

Edit = tuple[str, str]  # what stands there, and what comes in its place
ALWAYS, NOTHING = "always", "nothing"  # words of `faults`


@dataclass(frozen=True)
class Planted:
    """A solution with a mistake in it."""

    mistake: Mistake
    source: str  # as a reader would write it: it needs NumPy alone


def planted(spec: Spec, name: str) -> tuple[Planted, ...]:
    """Return the faulty solutions of an exercise; none where no fault is listed.

    Args:
        spec: what judges the exercise.
        name: of the function that it asks for.

    Raises:
        ValueError: what is to be changed does not stand there once, or a fault is
            none of the spec's mistakes.
    """
    known = {mistake.id: mistake for mistake in spec.mistakes}
    faults = listed(spec.name)
    always = faults.pop(ALWAYS, ())
    right = _right(spec)
    if more := faults.keys() - known.keys():
        raise ValueError(f"{sorted(more)} must be mistakes of {spec.name}")
    return tuple(
        Planted(
            known[id], _written(right, name, (*always, *(edits or known[id].edits)))
        )
        for id, edits in faults.items()
    )


def solution(spec: Spec, name: str) -> str:
    """Return the code that faults are planted in: it is right.

    Args:
        spec: what judges the exercise.
        name: of the function that it asks for.
    """
    return _written(_right(spec), name, listed(spec.name).get(ALWAYS, ()))


def listed(name: str) -> dict[str, tuple[Edit, ...]]:
    """Read the faults of a spec, by their ids; none if it is the oracle's own change.

    "id: before → after" is a change; of several, each has its line. Of "id id …" the
    changes are the spec's own: there are none here.
    """
    found: dict[str, tuple[Edit, ...]] = {}
    text = re.sub(r"→\n +", "→ ", FAULTS.get(name, ""))  # a long change goes on
    for line in text.split("\n"):
        head, colon, change = line.strip().partition(": ")
        before, _, after = change.partition("→")
        for id in head.split():
            edit = ((before.strip(), after.strip()),) if colon else ()
            found[id] = found.get(id, ()) + edit
    return found


def _right(spec: Spec) -> Function:
    changed = any(listed(spec.name).values())
    return FORMULAS.get(spec.name, spec.oracle) if changed else spec.oracle


def _written(right: Function, name: str, edits: tuple[Edit, ...]) -> str:
    """Write a function under its name, changed, below what it calls and imports."""
    parts: dict[Function, str] = {}
    imported: set[tuple[str, str]] = set()
    stands = dict.fromkeys(edits, 0)

    def add(function: Function) -> None:
        parts[function] = ""  # no second time
        source = _plain(source_of(function), told=function is not right)
        needed = {*_names(source)}  # of the right code, too: who mends it needs them
        for before, after in edits:
            stands[before, after] += source.count(before)
            if after == NOTHING:
                source = re.sub(rf"^ *{re.escape(before)}\n", "", source, flags=re.M)
            source = source.replace(before, after)
        for used in sorted(needed | {*_names(source)}):
            value = vars(modules[function.__module__]).get(used)
            if isfunction(value) and value.__module__.startswith("tformer."):
                if value not in parts:
                    add(value)
            elif value is not None and used != "np":
                imported.add((value.__module__, used))
        del parts[function]
        parts[function] = source  # below what it calls

    add(right)
    for (before, _), times in stands.items():
        if times != 1:
            raise ValueError(f"{before!r} must stand once in {right.__name__}")
    code = "\n\n".join(parts.values()).replace(f"def {right.__name__}(", f"def {name}(")
    lines = [
        f"from {module} import {', '.join(each for _, each in pairs)}\n"
        for module, pairs in groupby(sorted(imported), key=lambda pair: pair[0])
    ]
    if "np" in _names(code):
        lines.append(("\n" if lines else "") + "import numpy as np\n")
    return "".join(lines) + ("\n\n" if lines else "") + code


def _names(source: str) -> Iterator[str]:
    """Yield the names that a code reads, in their order."""
    nodes = (x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.Name))
    yield from dict.fromkeys(x.id for x in nodes if isinstance(x.ctx, ast.Load))


def _plain(source: str, *, told: bool) -> str:
    """Leave out annotations, and the docstring where the exercise has told it."""
    defined = next(x for x in ast.parse(source).body if isinstance(x, ast.FunctionDef))
    lines = source.split("\n")
    nodes = (x for x in ast.walk(defined) if isinstance(x, ast.AnnAssign) and x.value)
    for node in nodes:
        line, end = lines[node.lineno - 1], node.target.end_col_offset
        lines[node.lineno - 1] = line[:end] + line[node.annotation.end_col_offset :]
    arguments = (x for x in ast.walk(defined.args) if isinstance(x, ast.arg))
    for argument in arguments:
        argument.annotation = None
    head = f"def {defined.name}({ast.unparse(defined.args)}):"
    first = 0 if told or ast.get_docstring(defined) is None else 1
    return "\n".join((head, *lines[defined.body[first].lineno - 1 :]))
