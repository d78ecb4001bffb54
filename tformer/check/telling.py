"""Says in plain text what was found of a file."""

import re
from collections.abc import Iterator
from textwrap import fill, indent

import numpy as np

from tformer.check.calling import Call
from tformer.check.evidence import right_of
from tformer.check.exercises import Exercise
from tformer.check.grading import Grade
from tformer.check.judging import PARTLY
from tformer.check.outcomes import Outcome, Table
from tformer.check.spec import PROPERTIES

SITE = "https://tformer.github.io/tformer/"
NUMBERS = 40  # the most that are shown of an array
LINES = 12  # of what a file printed
WIDTH = 88


def address(section: str) -> str:
    """Say where "chapter#section" stands on the site."""
    chapter, _, part = section.partition("#")
    return f"{SITE}chapters/{chapter}/" + f"#{part}" * bool(part)


def page_of(spec: str, mistake: str) -> str:
    """Say where a mistake has a page of its own, with a picture."""
    return f"{SITE}mistakes/{spec}/{mistake}/"


def tell(exercise: Exercise, grade: Grade) -> str:
    """Say what was found of a file: whether it is right; if not, in what, and why."""
    text = "\n".join(_parts(exercise, grade))
    shown = (x if x.isprintable() or x == "\n" else ascii(x)[1:-1] for x in text)
    return "".join(shown)


def _parts(exercise: Exercise, grade: Grade) -> Iterator[str]:
    yield f"{grade.file}: {grade.verdict}" + ("." if grade.verdict == "right" else "")
    if grade.note:
        yield _filled(f"Note: {grade.note}.")
    if grade.reason:
        yield _filled(f"{grade.reason}.")
        yield from _line_of(grade.reason, grade.source)
    if grade.judged and grade.judged.differs:
        yield from _difference(exercise, grade)
    if grade.printed and grade.verdict != "right":
        lines = grade.printed.splitlines()
        more = [] if len(lines) <= LINES else [f"… and {len(lines) - LINES} lines more"]
        yield "It printed:"
        yield indent("\n".join(x[: WIDTH - 4] for x in [*lines[:LINES], *more]), "    ")
    if grade.verdict == "wrong":
        yield f"A hint: tformer check {exercise.name} --hint 1"


def _difference(exercise: Exercise, grade: Grade) -> Iterator[str]:
    if grade.judged is None or (found := grade.judged.differs) is None:
        return
    known = grade.judged.mistakes
    if len(known) > 1:
        yield "All of these:" if grade.judged.together else "One of these:"
    for mistake in known:
        yield _filled(mistake.sentence)
        yield f"    {address(mistake.chapter)}"
        if mistake in exercise.spec.mistakes:  # those of any function have no page
            yield f"    {page_of(exercise.name, mistake.id)}"
    if grade.judged.partly:
        yield PARTLY
    if not known and "NotImplementedError" in found.message:
        yield "It is not written yet."
        return
    if not known:
        yield _filled(f"Not diagnosed. {exercise.title}: {address(exercise.chapter)}")
    case = next(x for x in exercise.cases if x.name == found.case)
    yield _filled(f'In the case "{found.case}" {found.message}.')
    yield from _line_of(found.message, grade.source)
    if found.kind in PROPERTIES and found.kind not in ("layout", "precision"):
        yield _filled(f"What must hold: {PROPERTIES[found.kind]}.")
    inputs = exercise.spec.task().inputs(case)
    yield indent("\n".join(f"{k} = {_shown(x, k)}" for k, x in inputs.items()), "    ")
    if grade.evidence and found.kind not in (*PROPERTIES, "error", "shape"):
        given = grade.evidence.answers[Call(case.name)].outcome
        where, texts = _both(given, right_of(exercise.spec, case), found.message)
        yield f"It returns{where}"
        yield indent(texts[0], "    ")
        yield "and not"
        yield indent(texts[1], "    ")


def _both(given: Outcome, right: Outcome, message: str) -> tuple[str, list[str]]:
    """Show two results; of large ones the row of the number that a message names."""
    where, pairs = "", [given.arrays, right.arrays]
    found = re.search(r"result\[([\d, ]+)\]", message)
    if found and any(x.size > NUMBERS for x in right.arrays):
        at = tuple(int(i) for i in found[1].split(","))[:-1]
        shaped = [[x for x in arrays if x.ndim > len(at)] for arrays in pairs]
        where = f" in result[{', '.join(map(str, at))}]"
        pairs = [tuple(x[at] for x in arrays[:1]) for arrays in shaped]
    return where, ["\n".join(_shown(x) for x in arrays) for arrays in pairs]


def _shown(value: object, name: str = "") -> str:
    if isinstance(value, Table):
        return "a table of log-probabilities, by the number of ids and the last"
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.dtype.kind not in "biuf":
        return "what is no array of numbers"
    if value.size > NUMBERS:
        kind = "booleans" if value.dtype.kind == "b" else "numbers"
        return f"{kind} in the shape {value.shape}"
    before = " " * (len(name) + 3) * bool(name)
    text = np.array2string(
        value, precision=4, suppress_small=True, max_line_width=76, prefix=before
    )
    return f"{text}  {value.shape}" if value.ndim > 1 else text


def _line_of(message: str, source: str) -> Iterator[str]:
    """Show the line of the reader's file that a message names."""
    lines = source.splitlines()
    if found := re.search(r"\(line (\d+)\)", message):
        number = int(found[1])
        if 0 < number <= len(lines):
            yield f"    {number} | {lines[number - 1].strip()}"


def _filled(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
