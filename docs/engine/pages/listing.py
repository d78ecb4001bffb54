"""What holds over all pages: the navigation, names, and what the package holds."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.pages.blocks import PageError
from engine.pages.reading import CHAPTERS, Page, kind_of
from engine.project import Project
from engine.run.figures import repeated_names


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


def project_problems(project: Project, pages: list[Page]) -> list[str]:
    """Return what is wrong with more than one page at once, without running any."""
    problems = [
        *marked_sources(project),
        *_repeated_chapters(pages),
        *repeated_names(_readable(pages)),
    ]
    return [project.tidy(problem) for problem in problems]


def marked_sources(project: Project) -> list[str]:
    """Find snippet markers: a page names a definition, so the package holds none."""
    advice = 'a page names a definition, as in --8<-- "file.py:Class.method"'
    return [
        f"{path}:{number}: the package holds no snippet markers: {advice}"
        for path in project.package_files()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1)
        if "8<-" in line
    ]


# `nn.RMSNorm`, `torch.nn.RMSNorm`, `from torch.nn import RMSNorm`
_TORCHS = re.compile(
    r"(?<![\w.])(?:torch\.)?nn(?:\.\w+)+|from torch[\w.]* import (?:\([^)]*\)|.*)"
)


def unshown_names(project: Project, pages: list[Page]) -> list[str]:
    """Return the public names of the package that no block of a chapter holds.

    What torch calls by the same name, as in `nn.RMSNorm`, does not count.
    """
    code = "\n".join(
        block.fence.code
        for page in _readable(pages)
        if page.is_chapter
        for block in page.blocks
    )
    words = set(re.findall(r"\w+", _TORCHS.sub("", code)))
    return sorted(name for name in project.public_names if name not in words)


def _repeated_chapters(pages: list[Page]) -> list[str]:
    """Two chapters of one name would write over each other's files."""
    names = Counter(page.name for page in pages if page.is_chapter)
    return [
        f"{page.top}: another chapter is called {page.name} as well"
        for page in pages
        if page.is_chapter and names[page.name] > 1
    ]


def _readable(pages: list[Page]) -> list[Page]:
    """Return the pages whose blocks can be told; the others say so themselves."""
    readable = []
    for page in pages:
        try:
            _ = page.blocks
        except PageError:
            continue
        readable.append(page)
    return readable
