"""Whether a chapter is in the navigation, and finished."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.pages.reading import CHAPTERS, kind_of
from engine.project import Project


def files_of(entry: Any) -> Iterator[str]:
    """Yield the files of a navigation, as mkdocs.yml has it, in their order."""
    if isinstance(entry, str):
        yield entry
    elif entry:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from files_of(part)


def unlisted_problem(
    project: Project, path: Path, meta: Mapping[str, Any]
) -> str | None:
    """Say where a chapter belongs that the navigation of mkdocs.yml lacks.

    Without a navigation MkDocs lists all pages, and nothing is wrong.
    """
    folder = project.docs / CHAPTERS
    listed = list(files_of(project.config.get("nav")))
    if not listed or path.parent != folder or kind_of(meta, True) != "chapter":
        return None
    file = f"{CHAPTERS}/{path.name}"
    if file in listed:
        return None
    needed = {f"{CHAPTERS}/{name}" for name in meta.get("builds_on") or []}
    before = [name for name in listed if name in needed]
    before = before or [name for name in listed if name.startswith(f"{CHAPTERS}/")]
    after = f" after {before[-1]}" if before else ""
    return f"mkdocs.yml: add {file}{after}"


def todo_problems(path: Path, text: str) -> list[str]:
    """Return each TODO that is left in a page."""
    return [
        f"{path}:{n}: TODO is left: {line.strip()}"
        for n, line in enumerate(text.split("\n"), 1)
        if re.search(r"\bTODO\b", line)
    ]
