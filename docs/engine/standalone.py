"""One file with all that a chapter embeds, which needs nothing of the package.

Each module is a section of the file: the statements that the chapter embeds where they
suffice, else the whole module. What a module imports from the package stands above it;
what it imports from elsewhere, at the top.
"""

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.merging import Merger
from engine.reading import Page

TWIN = "reference"  # the subpackage that repeats the names of the others, in NumPy


@dataclass(frozen=True)
class Standalone:
    """A finished file, and the modules it was made from."""

    name: str
    text: str
    sources: list[Path]


def standalone_files(page: Page) -> list[Standalone]:
    """Return the files of a page: one, or two where it embeds the NumPy twin.

    Raises:
        PageError: an import or a name that one file cannot hold.
    """
    shown = _embedded(page)
    twin = page.project.root / page.project.package / TWIN
    core = {path: n for path, n in shown.items() if not path.is_relative_to(twin)}
    rest = {path: n for path, n in shown.items() if path.is_relative_to(twin)}
    parts = [(f"{page.name}.py", core), (f"{page.name}_numpy.py", rest)]
    return [_merge(page, name, lines) for name, lines in parts if lines]


def _embedded(page: Page) -> dict[Path, set[int]]:
    """Return the lines of the package that the blocks of a page hold, by file."""
    package = page.project.root / page.project.package
    shown: dict[Path, set[int]] = {}
    for block in page.blocks:
        if block.mark is None or block.mark.condition is not None:
            for line in block.lines:
                file = line.origin.file
                if file.suffix == ".py" and file.is_relative_to(package):
                    shown.setdefault(file, set()).add(line.origin.line)
    return shown


def _merge(page: Page, name: str, shown: dict[Path, set[int]]) -> Standalone:
    whole: set[Path] = set()
    while True:
        merger = Merger(page, shown, whole)
        for path in shown:
            merger.add(path)
        if merger.too_little <= whole:
            return Standalone(name, _layout(page, merger), list(merger.sources))
        whole |= merger.too_little


def _layout(page: Page, merger: Merger) -> str:
    """Write the head of the file, its imports and its sections."""
    head = [
        f"# {page.title}: the code of the chapter in one file.",
        f"# {page.project.page_url(page.path)}",
        "# MIT licence.",
        "",
    ]
    if merger.future:
        head += [f"from __future__ import {', '.join(sorted(merger.future))}", ""]
    for third_party in (False, True):
        head += _import_lines(
            {x for x in merger.imports if _is_third_party(x[0]) is third_party}
        )
    return "\n".join(head) + "\n\n" + "\n\n\n".join(merger.sections) + "\n"


def _is_third_party(source: str) -> bool:
    return source.partition(".")[0] not in sys.stdlib_module_names


def _import_lines(imports: set[tuple[str, str, str]]) -> list[str]:
    """Write imports as ruff orders them, and an empty line below."""
    lines = [
        _import_line(source, here) for source, name, here in sorted(imports) if not name
    ]
    named = sorted(found for found in imports if found[1])
    for source, group in itertools.groupby(named, lambda found: found[0]):
        lines += _from_lines(
            source,
            [name if name == here else f"{name} as {here}" for _, name, here in group],
        )
    return [*lines, ""] if lines else []


def _import_line(source: str, here: str) -> str:
    plain = here == source.partition(".")[0]
    return f"import {source}" if plain else f"import {source} as {here}"


def _from_lines(source: str, names: list[str]) -> list[str]:
    line = f"from {source} import {', '.join(names)}"
    if len(line) <= 88:
        return [line]
    return [f"from {source} import (", *(f"    {name}," for name in names), ")"]
