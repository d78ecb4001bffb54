"""Find the fenced code blocks of a page, by the rules of pymdownx.superfences."""

import re
from dataclasses import dataclass, field

from engine.lines import Line, PageError

_OPENING = re.compile(r"(?P<prefix>[ >]*)(?P<ticks>`{3,}(?!.*`)|~{3,})(?P<info>.*)$")
_LANGUAGE = re.compile(r"\s*(?:\{\s*)?\.?(?P<name>[\w#+.-]+)(?![\w=])")
_CLASS = re.compile(r"[{\s]\.([\w-]+)")

# The names by which Pygments knows Python, and what it calls a session.
PYTHON = {"python", "py", "python3", "py3", "pyi", "sage", "bazel", "starlark"}
PYTHON |= {"python2", "py2", "ipython", "ipython3"}
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
    """Return the fences of a page in order.

    Raises:
        PageError: a fence that no line closes, or that a line leaves to the left.
    """
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
