"""Which family is written as a change of which: their order, the list of changes."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Changed(Protocol):
    """A family, as far as the list needs it."""

    name: str  # of its file
    title: str
    summary: str  # what it changed
    after: str | None  # the family that it changes, by its file


F = TypeVar("F", bound=Changed)


def children(found: Iterable[F], name: str | None) -> list[F]:
    """Return the families that change this one; of None those that change none."""
    rows = [*found]
    names = {family.name for family in rows}
    return [x for x in rows if (x.after if x.after in names else None) == name]


def in_order(found: Iterable[F], name: str | None = None) -> list[F]:
    """Put each family behind the one that it changes."""
    rows = [*found]
    of_each = ([x, *in_order(rows, x.name)] for x in children(rows, name))
    return [family for one in of_each for family in one]


def changes(found: Iterable[Changed], name: str | None = None, indent: str = "") -> str:
    """Make the list of all changes: those of a family stand below its own."""
    rows, lines = [*found], []
    for family in children(rows, name):
        said = f"[{family.title}](#{family.name}): {capital(family.summary)}"
        lines += [f"{indent}- {said}", changes(rows, family.name, f"{indent}    ")]
    return "\n".join(line for line in lines if line)


def capital(text: str) -> str:
    """Begin with a capital."""
    return text[:1].upper() + text[1:]
