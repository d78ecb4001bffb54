"""The smallest case that shows a mistake, with what is right and what is wrong there.

All numbers are computed from the spec; what was computed once is kept in .cache/.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from inspect import signature
from pathlib import Path
from typing import cast

import numpy as np

from engine.mistakes import known, name_of
from engine.run.cache import digest_of
from tformer.check.calling import Call
from tformer.check.evidence import TOLERANCES, Evidence, ask, right_of
from tformer.check.outcomes import Outcome, Table, difference
from tformer.check.spec import Array, Case, Mistake, Spec

RTOL = 1e-5
ROWS, COLUMNS = 5, 7  # the most that are drawn: what a phone shows
NUMBERS = 24  # the most that are printed of an input


@dataclass(frozen=True)
class Shown:
    """One case, and a part of the result that differs there, as rows of numbers."""

    case: str
    kind: str  # "value", "shape", … or a property
    message: str  # as `tformer check` says it
    inputs: tuple[str, ...]  # "name = value"
    part: str = ""  # what is drawn: "result[0, 0]", or the gradient of an input
    dtype: str = "f"  # of the numbers: f, i or b, as in NumPy
    right: tuple[tuple[float, ...], ...] = ()
    wrong: tuple[tuple[float, ...], ...] = ()
    crop: str = ""  # which rows and columns are drawn, if not all


def all_shown(root: Path) -> dict[str, Shown]:
    """Return what shows each mistake, by name; ask only if the specs have changed."""
    files = [*sorted((root / "tformer/check").glob("*.py")), Path(__file__)]
    state = hashlib.sha256("".join(map(digest_of, files)).encode()).hexdigest()
    kept = root / ".cache" / "mistakes.json"
    if kept.is_file():
        read = json.loads(kept.read_text("utf-8"))
        if read["state"] == state:
            return {name: Shown(**fields) for name, fields in read["shown"].items()}
    found = {name_of(spec, each): show(spec, each) for spec, each in known()}
    kept.parent.mkdir(exist_ok=True)
    fields = {name: asdict(shown) for name, shown in found.items()}
    kept.write_text(json.dumps({"state": state, "shown": fields}), "utf-8")
    return found


def show(spec: Spec, mistake: Mistake) -> Shown:
    """Find the smallest case that shows a mistake; one that readers are asked first.

    Raises:
        ValueError: no case shows it.
    """
    ordered = sorted(spec.cases, key=lambda x: (not _is_asked(x), x.size))
    if mistake.shows != "value":
        return _by_property(spec, mistake, _taken(mistake, ordered))
    for case in ordered:
        wrong, right = _outcome(spec, mistake, case), right_of(spec, case)
        if found := difference(wrong, right, RTOL):
            numbers = _numbers(wrong, right, RTOL)
            return Shown(case.name, *found, inputs_of(spec, case), *numbers)
    raise ValueError(f"no case of {spec.name} shows {mistake.id}")


def _is_asked(case: Case) -> bool:
    """Whether `tformer check` asks a reader's function."""
    return case.exercise and not case.options


def _taken(mistake: Mistake, cases: list[Case]) -> list[Case]:
    """Return the cases with no option that the code of the mistake lacks."""
    names = signature(mistake.right).parameters.keys()
    return [case for case in cases if names >= {*case.options}]


def _outcome(spec: Spec, mistake: Mistake, case: Case) -> Outcome:
    if mistake.framework == "numpy":
        return spec.outcome(mistake.function, case)
    return ask(spec, mistake.function, mistake.framework, [case]).outcomes[case.name]


def _by_property(spec: Spec, mistake: Mistake, cases: list[Case]) -> Shown:
    """Find where a property does not hold; draw what can be drawn of it."""
    for case in cases:
        evidence = ask(spec, mistake.function, mistake.framework, [case])
        for found in evidence.differences(RTOL):
            if found.kind == mistake.shows:
                numbers = _of_property(evidence, mistake, case)
                told = (found.kind, found.message, inputs_of(spec, case))
                return Shown(case.name, *told, *numbers)
    raise ValueError(f"no case of {spec.name} shows {mistake.id}")


Numbers = tuple[()] | tuple[str, str, "Rows", "Rows", str]
Rows = tuple[tuple[float, ...], ...]


def _of_property(evidence: Evidence, mistake: Mistake, case: Case) -> Numbers:
    """Return the right and wrong gradient, result in a narrow dtype, or input."""
    if mistake.shows == "gradient":
        slopes = evidence.answers[Call(case.name, gradient=True)].gradients
        right = evidence.task.gradients(mistake.right, case)
        for name, wanted in right.items():
            if numbers := _pair(f"the gradient of {name}", slopes[name], wanted, 1e-4):
                return numbers
    for call in evidence.task.calls:
        if mistake.shows == "precision" and call.dtype in TOLERANCES:
            given = evidence.answers[call].outcome
            rounded = right_of(evidence.spec, case, call.dtype)
            if difference(given, rounded, TOLERANCES[call.dtype]):
                return _numbers(given, rounded, TOLERANCES[call.dtype])
        if mistake.shows == "inputs" and (names := evidence.answers[call].changed):
            inputs = evidence.task.inputs(case, mistake.framework)
            evidence.task.call(mistake.function, case, inputs)
            before = evidence.task.inputs(case)[names[0]]
            after = np.asarray(inputs[names[0]])
            return _pair(f"the input {names[0]}", after, cast(Array, before), RTOL)
    return ()


def _numbers(wrong: Outcome, right: Outcome, rtol: float) -> Numbers:
    """Return of the first result that differs what can be drawn."""
    several = len(right.arrays) > 1
    for number, (x, y) in enumerate(zip(wrong.arrays, right.arrays, strict=False)):
        name = f"result {number + 1}" if several else "result"
        if numbers := _pair(name, x, y, rtol):
            return numbers
    return ()


def _pair(name: str, wrong: Array, right: Array, rtol: float) -> Numbers:
    """Cut two arrays down to the rows and columns around the first difference."""
    if not all(x.dtype.kind in "biuf" and x.size for x in (wrong, right)):
        return ()
    if wrong.shape != right.shape:
        x, y = (_first(each)[: ROWS + 1, : COLUMNS + 1] for each in (wrong, right))
        return name, _kind(right), _rows(y), _rows(x), "the first rows and columns"
    apart = differing(wrong, right, rtol)
    if not apart.any():
        return ()
    at = tuple(int(i) for i in np.argwhere(apart)[0])
    lead = at[:-2]
    x, y = np.atleast_2d(wrong[lead], right[lead])
    cuts, said = [], []
    for near, size, most, axis in zip(
        (0, 0, *at)[-2:], y.shape, (ROWS, COLUMNS), ("rows", "columns"), strict=True
    ):
        begin = max(0, min(near - most // 2, size - most))
        cuts.append(slice(begin, begin + most))
        said.append(f"{axis} {begin}–{min(begin + most, size) - 1}")
    whole = y.shape[0] <= ROWS and y.shape[1] <= COLUMNS
    crop = "" if whole else f"{said[0]}, {said[1]} of {y.shape[0]} × {y.shape[1]}"
    place = f"{name}[{', '.join(map(str, lead))}]" if lead else name
    rows, columns = cuts
    return place, _kind(right), _rows(y[rows, columns]), _rows(x[rows, columns]), crop


def _kind(x: Array) -> str:
    return "i" if x.dtype.kind == "u" else x.dtype.kind


def _first(x: Array) -> Array:
    """Return the first matrix of an array."""
    return np.atleast_2d(x[(0,) * max(0, x.ndim - 2)])


def differing(wrong: Array, right: Array, rtol: float) -> Array:
    """Mark which numbers differ by more than rounding explains."""
    x, y = wrong.astype(float), right.astype(float)
    finite = np.isfinite(y)
    largest = np.abs(y[finite]).max(initial=0)
    with np.errstate(invalid="ignore"):
        close = np.abs(x - y) <= rtol * largest
    return ~np.where(finite, close, (x == y) | (np.isnan(x) & np.isnan(y)))


def _rows(x: Array) -> Rows:
    return tuple(tuple(float(number) for number in row) for row in x)


def inputs_of(spec: Spec, case: Case) -> tuple[str, ...]:
    """Print the inputs of a case, large ones by their shape."""
    return tuple(_lines(spec, case))


def _lines(spec: Spec, case: Case) -> Iterator[str]:
    for name, value in spec.task().inputs(case).items():
        if isinstance(value, Table):
            yield f"{name} = a table of log-probabilities {value.table.shape}"
        elif not isinstance(value, np.ndarray):
            yield f"{name} = {value!r}"
        elif value.size > NUMBERS:
            yield f"{name} = numbers in the shape {value.shape}"
        else:
            before = " " * (len(name) + 3)
            text = np.array2string(
                value, precision=2, suppress_small=True, prefix=before
            )
            yield f"{name} = {text}"
