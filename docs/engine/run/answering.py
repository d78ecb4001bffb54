"""Hold the solutions of a page against what is known of its exercises."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from engine.pages.blocks import Block
from engine.pages.exercises import answers_of, blocks_in, call, places, solution_of
from engine.pages.reading import Page

if TYPE_CHECKING:
    from tformer.check.asked import Exercise


class Answered(NamedTuple):
    """The check of a solution."""

    code: str  # check("masks", 5, reaches)
    text: str  # what it says
    problem: str | None  # why the page and the answers do not agree


def answered(
    page: Page, block: Block, names: Mapping[str, object], printed: str
) -> Answered | None:
    """Check a solution that ends with this block, in the names that it leaves.

    `printed` is what the page has printed so far.
    """
    exercise = _ends(page, block) if page.is_chapter else None
    answer = solution_of(exercise) if exercise else None
    if exercise is None or answer is None:
        return None
    code = call(exercise, answer)
    check = import_module(f"{page.project.package}.check").check
    where = f"{page.path}:{block.line}: exercise {exercise.number}"
    try:
        said = eval(code, {**names, "check": check})
        holds = not exercise.options or eval(exercise.page or "True", {**names})
    except Exception as error:  # noqa: BLE001 - whatever the expression does
        return Answered(code, "", f"{where}: {code}\nraises {error!r}")
    problem = None if said.right else f"{where}: {code}\nsays: {said}"
    if not holds:
        problem = f"{where}: {exercise.page} does not hold"
    for field in exercise.fields:
        if field.shown and not _shows(printed, field.shown.format(field.right.item())):
            problem = f"{where}: {field.asks} is not printed as {field.shown}"
    return Answered(code, repr(said), problem)


def _ends(page: Page, block: Block) -> "Exercise | None":
    """Return the exercise whose solution ends with a block."""
    for place in places(page):
        inside = blocks_in(page, place.solution)
        if inside and inside[-1].number == block.number:
            return answers_of(page.project, page.name).get(place.number)
    return None


def _shows(printed: str, number: str) -> bool:
    """Say whether a number stands in a text, and not as a part of another."""
    pattern = rf"(?<![\d.,]){re.escape(number)}(?!\d|[.,]\d)"
    return re.search(pattern, printed) is not None
