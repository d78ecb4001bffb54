"""Lines of text that know the file and line they were read from."""

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

from pymdownx.snippets import SnippetMissingError  # type: ignore[import-untyped]

from engine.definitions import DefinitionExtension, DefinitionPreprocessor
from engine.project import Project

TAB = 4


class Origin(NamedTuple):
    """A place in a file; lines count from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class PageError(Exception):
    """Something wrong with a page, and the place where it is."""

    def __init__(self, origin: Origin, problem: str) -> None:
        super().__init__(f"{origin}: {problem}")


class Line(str):
    """A line of text and where it was written."""

    __slots__ = ("origin",)
    origin: Origin

    def __new__(cls, text: str, origin: Origin) -> "Line":
        """Attach `origin` to `text`."""
        self = super().__new__(cls, text)
        self.origin = origin
        return self

    # What the snippet preprocessor does to a line, without losing the origin:
    # `indent + line` for a snippet in a tab, `replace` for `;--8<--`.
    def __radd__(self, indent: str) -> "Line":
        return Line(f"{indent}{self}", self.origin)

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> "Line":
        """Replace text in the line."""
        return Line(super().replace(old, new, count), self.origin)


class _Snippets(DefinitionPreprocessor):
    """The preprocessor of the site, whose lines keep their origin."""

    def read_lines(self, path: str) -> list[Line]:  # type: ignore[override]
        """Read a file whole."""
        lines = super().read_lines(path)
        return [Line(x, Origin(Path(path), n)) for n, x in enumerate(lines, 1)]

    def dedent(self, lines: list[Line]) -> list[Line]:
        """Take away the indentation that all lines share."""
        if not lines:
            return []
        dedented = super().dedent(lines)
        return [Line(x, y.origin) for x, y in zip(dedented, lines, strict=True)]


def number(path: Path, text: str, first: int = 1) -> list[Line]:
    """Split the text of a file, from its line `first` on."""
    lines = enumerate(text.split("\n"), first)
    return [Line(x.expandtabs(TAB), Origin(path, n)) for n, x in lines]


def expand(project: Project, lines: list[Line]) -> list[Line]:
    """Put the snippets in their places, as the site does."""
    options = snippet_options(project)
    if not options:
        return lines
    last = lines[-1].origin if lines else Origin(project.root, 1)
    try:
        expanded = _preprocess(options, list(lines))
    except SnippetMissingError as error:
        for line in lines:
            if "8<-" in line:
                try:
                    _preprocess({**options, "auto_append": []}, [line])
                except SnippetMissingError:
                    last = line.origin
                    break
        raise PageError(last, str(error)) from None
    return list(_keep_origins(expanded, last))


def snippet_options(project: Project) -> dict[str, Any]:
    """Return the options of mkdocs.yml, with base paths that hold in any folder."""
    options = project.extension_options("engine.definitions")
    if options:
        bases = options.get("base_path", ["."])
        bases = [bases] if isinstance(bases, str) else bases
        options["base_path"] = [str(project.root / base) for base in bases]
    return options


def indent_of(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def squeeze(text: str) -> str:
    """Drop blanks at the ends of lines, and empty lines at both ends."""
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\A\n+|\n+\Z", "", "\n".join(lines))


def _preprocess(options: dict[str, Any], lines: list[Line]) -> list[str]:
    settings = DefinitionExtension(**options).getConfigs()
    preprocessor = _Snippets(settings, types.SimpleNamespace(tab_length=TAB))
    expanded: list[str] = preprocessor.run(lines)
    return expanded


def _keep_origins(lines: list[str], origin: Origin) -> Iterator[Line]:
    """Count on where the preprocessor made a line anew, as it does with `;--8<--`."""
    for line in lines:
        follows = Origin(origin.file, origin.line + 1)
        origin = line.origin if isinstance(line, Line) else follows
        yield Line(line.expandtabs(TAB), origin)
