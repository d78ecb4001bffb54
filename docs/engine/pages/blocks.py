"""Lines that know where they are from, fenced code, and Python blocks with outputs."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

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

    # The snippet preprocessor adds `indent + line` for a snippet in a tab.
    def __radd__(self, indent: str) -> "Line":
        return Line(f"{indent}{self}", self.origin)


def number(path: Path, text: str, first: int = 1) -> list[Line]:
    """Split the text of a file, from its line `first` on."""
    lines = enumerate(text.split("\n"), first)
    return [Line(x.expandtabs(TAB), Origin(path, n)) for n, x in lines]


def indent_of(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def squeeze(text: str) -> str:
    """Drop blanks at the ends of lines, and empty lines at both ends."""
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\A\n+|\n+\Z", "", "\n".join(lines))


_OPENING = re.compile(r"(?P<prefix>[ >]*)(?P<ticks>`{3,}(?!.*`)|~{3,})(?P<info>.*)$")
_LANGUAGE = re.compile(r"\s*(?:\{\s*)?\.?(?P<name>[\w#+.-]+)(?![\w=])")
_CLASS = re.compile(r"[{\s]\.([\w-]+)")

# The names by which Pygments knows Python, and what it calls a session.
PYTHON = {"python", "py", "python3", "py3", "pyi", "sage", "bazel", "starlark"}
PYTHON |= {"python2", "py2", "ipython", "ipython3", "numpy"}
SESSIONS = {"pycon", "python-console", "pycon3", "ipythonconsole"}


@dataclass(frozen=True)
class Fence:
    """A fenced block; `start` and `end` are the indices of its two fence lines."""

    start: int
    end: int
    prefix: str  # blanks, and `>` in a quote, before the fence
    ticks: str
    language: str
    classes: frozenset[str]
    opening: Line
    lines: list[Line] = field(repr=False)  # without the prefix

    @property
    def code(self) -> str:
        """The text between the fence lines."""
        return "\n".join(self.lines)

    @property
    def is_python(self) -> bool:
        """Whether the page shows Python here, as a script or as a session."""
        return self.language in PYTHON | SESSIONS

    @property
    def is_output(self) -> bool:
        """Whether this is what the block before it prints."""
        return "output" in self.classes


def find_fences(lines: list[Line]) -> list[Fence]:
    """Return the fences of a page in order, each of them closed."""
    fences, start = [], 0
    while start < len(lines):
        opening = _OPENING.match(lines[start])
        if opening:
            fence = _read_fence(lines, start, opening)
            fences.append(fence)
            start = fence.end
        start += 1
    return fences


def _read_fence(lines: list[Line], start: int, opening: re.Match[str]) -> Fence:
    prefix, ticks, info = opening["prefix"], opening["ticks"], opening["info"]
    language = _LANGUAGE.match(info)
    content: list[Line] = []
    for end in range(start + 1, len(lines)):
        line = lines[end]
        blank = not line.strip(" >")
        if not blank and not line.startswith(prefix):
            problem = "leaves the indentation of the fence around it"
            raise PageError(line.origin, f"the line {problem}: the site shows none")
        text = Line(line[len(prefix) :], line.origin)
        if text.rstrip() == ticks:
            return Fence(
                start=start,
                end=end,
                prefix=prefix,
                ticks=ticks,
                language=language["name"].lower() if language else "",
                classes=frozenset(_CLASS.findall(info)),
                opening=lines[start],
                lines=content,
            )
        content.append(text)
    raise PageError(lines[start].origin, f"no line closes the fence {ticks + info}")


_COMMENT = re.compile(r"\s*<!--[-\s]*pytest")
_SKIP = re.compile(
    r"""\s*<!--\s*pytest\.mark\.skip\((?:reason=(["'])(?P<reason>.*)\1)?\)\s*-->\s*"""
)
_HOW = 'the only mark is <!--pytest.mark.skip(reason="…")-->'


@dataclass
class Block:
    """A Python block of a page, in the order of the page."""

    number: int
    fence: Fence
    left_out: str | None = None  # the reason why it is not run, if there is one
    output: Fence | None = None

    @property
    def line(self) -> int:
        """The line of the fence in its file."""
        return self.fence.opening.origin.line

    @property
    def lines(self) -> list[Line]:
        """The code, each line with its origin."""
        return self.fence.lines


def find_blocks(lines: list[Line], fences: Iterable[Fence]) -> list[Block]:
    """Pair the Python fences of a page with their marks and outputs."""
    blocks: list[Block] = []
    mark: tuple[Line, str] | None = None  # the one that waits for its block
    end = -1
    for fence in fences:
        for line in lines[end + 1 : fence.start]:
            mark = _mark(line, mark)
        end = fence.end
        where = fence.opening.origin
        if fence.language in SESSIONS:
            advice = "write a python fence, and what it prints in a .output fence"
            raise PageError(where, f"a session is not run: {advice}")
        if fence.is_python:
            blocks.append(Block(len(blocks), fence, mark[1] if mark else None))
            mark = None
        elif fence.classes & (PYTHON | SESSIONS):
            problem = f"a {fence.language} fence is called Python, and would not be run"
            raise PageError(where, f"{problem}: write ```python")
        else:
            mark = _mark(fence.opening, mark)
        if fence.is_output:
            if not blocks or blocks[-1].output is not None:
                raise PageError(where, "an output that no Python block stands before")
            if blocks[-1].left_out:
                raise PageError(where, "the output of a block that is never run")
            blocks[-1].output = fence
    for line in [*lines[end + 1 :], *(mark[:1] if mark else ())]:
        mark = _mark(line, mark)
    return blocks


def _mark(line: Line, waiting: tuple[Line, str] | None) -> tuple[Line, str] | None:
    """Return the mark that waits below a line: `pytest.mark.skip(reason="…")`."""
    if not line.strip():
        return waiting
    if waiting:
        raise PageError(waiting[0].origin, "no Python block follows this mark")
    if not _COMMENT.match(line):
        return None
    mark = _SKIP.fullmatch(line)
    if mark is None:
        problem = f"not accepted in a page: {_HOW}; to show an error, catch it"
        raise PageError(line.origin, problem)
    reason = (mark["reason"] or "").strip()
    if not reason:
        raise PageError(line.origin, f"no reason is given: {_HOW}")
    return line, reason
