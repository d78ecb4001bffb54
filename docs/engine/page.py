"""A page as its reader meets it: snippets in place, and every line with its origin."""

import functools
import re
from pathlib import Path
from typing import Any

from mkdocs.utils.meta import get_data

from engine.blocks import Block, find_blocks
from engine.fences import Fence, find_fences
from engine.lines import Line, Origin, PageError, expand, number
from engine.project import Project


class Page:
    """A Markdown file, read once.

    Attributes:
        path: the file.
        meta: its front matter.
        lines: its text, snippets expanded, without the front matter.
    """

    def __init__(self, project: Project, path: Path) -> None:
        self.project = project
        self.path = path.resolve()
        self.text = self.path.read_text("utf-8")
        body, self.meta = self._split()
        above = self.text[: len(self.text) - len(body)].count("\n")
        self.body = number(self.path, body, first=above + 1)
        self.on_site = self.path.is_relative_to(project.docs)
        self.lines: list[Line] = self.body
        if self.on_site:
            self.lines = expand(project, self.body)

    def _split(self) -> tuple[str, dict[str, Any]]:
        if not self.text.startswith("---"):
            return self.text, {}  # MkDocs would take `Note: …` for front matter
        return get_data(self.text)

    @functools.cached_property
    def fences(self) -> list[Fence]:
        """All fenced blocks, of any language."""
        return find_fences(self.lines)

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The Python blocks."""
        return find_blocks(self.lines, self.fences)

    @functools.cached_property
    def has_python(self) -> bool:
        """Whether the page may hold Python blocks, told without a complaint."""
        try:
            return bool(self.blocks)
        except PageError:
            return True

    @property
    def name(self) -> str:
        """How files made from the page are called: `attention`."""
        return self.path.stem

    @property
    def title(self) -> str:
        """The heading of the page, without its attributes."""
        headings = (line for line in self.prose() if line.startswith("# "))
        return re.sub(r"\s*\{[^}]*\}\s*$", "", next(headings, self.name)).strip("# ")

    @property
    def is_chapter(self) -> bool:
        """Whether the page promises to have the parts of a chapter."""
        return self.meta.get("kind") == "chapter"

    @property
    def has_notebook(self) -> bool:
        """Whether a notebook is made of the page; `notebook: true` asks for one."""
        return self.is_chapter or bool(self.meta.get("notebook"))

    @property
    def top(self) -> Origin:
        """The place of what the page lacks as a whole."""
        return Origin(self.path, 1)

    def prose(self) -> list[Line]:
        """Return the lines outside of all fences."""
        inside = {n for f in self.fences for n in range(f.start, f.end + 1)}
        return [line for n, line in enumerate(self.lines) if n not in inside]
