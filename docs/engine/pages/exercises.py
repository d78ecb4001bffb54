"""The exercises of a chapter: where they stand in its page, and their answers."""

import re
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from engine.pages.blocks import Block, indent_of
from engine.pages.reading import Page
from engine.project import Project

if TYPE_CHECKING:
    from tformer.check.asked import Exercise, Field

_TITLE = re.compile(r'!!! question "(?P<number>\d+)\. ')
_SOLUTION = re.compile(r'    \?\?\?\+? success "Solution"')
_IN_BOX, _IN_FOLD = 4, 8


class Place(NamedTuple):
    """Where an exercise stands: indices of lines of the page."""

    number: int
    title: int
    end: int  # behind its last line
    solution: range  # its title and what is in it; empty, if the page gives none


def places(page: Page) -> list[Place]:
    """Find the exercises of a page."""
    prose, found = dict(page.prose), []
    for index, line in prose.items():
        if title := _TITLE.match(line):
            end = index + _inside(page, index + 1, _IN_BOX)
            starts = (i for i in range(index, end) if _SOLUTION.match(prose.get(i, "")))
            start = next(starts, end)
            inside = _inside(page, start + 1, _IN_FOLD) if start < end else 0
            solution = range(start, min(end, start + inside))
            found.append(Place(int(title["number"]), index, end, solution))
    return found


def _inside(page: Page, start: int, indent: int) -> int:
    """Count the lines from `start` on that are in a box, with its title's."""
    lines = page.lines[start:]
    held = takewhile(lambda x: not x.strip() or indent_of(x) >= indent, lines)
    return 1 + len([*held])


def blocks_in(page: Page, lines: range) -> list[Block]:
    """Return the blocks that stand in these lines."""
    return [block for block in page.blocks if block.fence.start in lines]


def answers_of(project: Project, chapter: str) -> "dict[int, Exercise]":
    """Read what is known of the answers to the exercises of a chapter."""
    folder = project.root / project.package / "check" / "answers"
    if not (folder / f"{chapter}.toml").is_file():
        return {}
    asked: dict[int, Exercise] = import_module(
        f"{project.package}.check.asked"
    ).exercises(chapter)
    return asked


def call(exercise: "Exercise", answer: str) -> str:
    """Write the line that checks an answer."""
    return f'check("{exercise.chapter}", {exercise.number}, {answer})'


def solution_of(exercise: "Exercise") -> str | None:
    """Write the right answer in the names of the page, if it has any for it."""
    if exercise.options:
        right = next(i for i, x in enumerate(exercise.options) if x.right)
        return f'"{"abcdefgh"[right]}"'
    if exercise.kind == "function":
        return exercise.page or exercise.name
    values = [_value(field) for field in exercise.fields]
    if not values or not all(values):
        return None
    return f"({', '.join(map(str, values))})" if len(values) > 1 else values[0]


def _value(field: "Field") -> str | None:
    return field.page or printed(field)


def printed(field: "Field") -> str | None:
    """Write a number as the page's solution prints it."""
    if not field.shown:
        return None
    return field.shown.format(field.right.item()).replace(",", "")
