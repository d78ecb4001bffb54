"""What holds over all pages: the navigation, and the names of the package."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from engine.pages.reading import CHAPTERS, Page
from engine.project import Project


def files_of(entry: Any) -> Iterator[str]:
    """Yield the files of a navigation, as mkdocs.yml has it, in their order."""
    if isinstance(entry, str):
        yield entry
    elif entry:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from files_of(part)


def unlisted_problem(page: Page) -> str | None:
    """Say where a chapter belongs that the navigation of mkdocs.yml lacks.

    Without a navigation MkDocs lists all pages, and nothing is wrong.
    """
    listed = list(files_of(page.project.config.get("nav")))
    if not listed or not page.is_chapter or page.file in listed:
        return None
    needed = {f"{CHAPTERS}/{name}" for name in page.meta.get("builds_on") or []}
    before = [name for name in listed if name in needed]
    before = before or [name for name in listed if name.startswith(f"{CHAPTERS}/")]
    after = f" after {before[-1]}" if before else ""
    return f"mkdocs.yml: add {page.file}{after}"


# `nn.RMSNorm`, `torch.nn.RMSNorm`, `from torch.nn import RMSNorm`
_TORCHS = re.compile(
    r"(?<![\w.])(?:torch\.)?nn(?:\.\w+)+|from torch[\w.]* import (?:\([^)]*\)|.*)"
)


def unshown_names(project: Project, pages: Iterable[Page]) -> list[str]:
    """Return the public names of the package that no block of a chapter holds.

    What torch calls by the same name, as in `nn.RMSNorm`, does not count.
    """
    blocks = (block for page in pages if page.is_chapter for block in page.blocks)
    code = "\n".join(block.fence.code for block in blocks)
    words = set(re.findall(r"\w+", _TORCHS.sub("", code)))
    return sorted(name for name in project.public_names if name not in words)
