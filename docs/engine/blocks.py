"""The Python blocks of a page: their marks, and the outputs that belong to them."""

import ast
import builtins
import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.fences import SESSIONS, Fence
from engine.lines import Line, PageError

_COMMENT = re.compile(r"\s*<!--[-\s]*(?P<text>pytest.*?)(?P<end>[-\s]*-->)?\s*$")
_HOW = (
    'the only marks are <!--pytest.mark.skip(reason="…")--> and '
    '<!--pytest.mark.skipif(condition, reason="…")-->'
)


@dataclass(frozen=True)
class Mark:
    """Why a block is left out; without a condition it always is."""

    reason: str
    condition: str | None = None

    def applies(self) -> bool:
        """Evaluate the condition, in which every name is a module."""
        return self.condition is None or bool(eval(self.condition, {}, _Modules()))


@dataclass
class Block:
    """A Python block of a page, in the order of the page."""

    number: int
    fence: Fence
    mark: Mark | None = None
    output: Fence | None = None

    @property
    def line(self) -> int:
        """The line of the fence in its file."""
        return self.fence.opening.origin.line

    @property
    def lines(self) -> list[Line]:
        """The code, each line with its origin."""
        return self.fence.lines

    def left_out(self) -> str | None:
        """Return the reason why the block is not run here, if there is one."""
        return self.mark.reason if self.mark and self.mark.applies() else None


def find_blocks(lines: list[Line], fences: Iterable[Fence]) -> list[Block]:
    """Pair the Python fences of a page with their marks and outputs.

    Raises:
        PageError: a mark that is not accepted or has no block, an output without a
            block, a session where a script is expected.
    """
    blocks: list[Block] = []
    marks = _Marks()
    end = -1
    for fence in fences:
        marks.read(lines[end + 1 : fence.start])
        end = fence.end
        if fence.is_python:
            if fence.language in SESSIONS:
                advice = "write a python fence, and what it prints in a .output fence"
                raise PageError(fence.opening.origin, f"a session is not run: {advice}")
            blocks.append(Block(len(blocks), fence, marks.take()))
        else:
            marks.none_waits()
        if fence.is_output:
            _attach(fence, blocks)
    marks.read(lines[end + 1 :])
    marks.none_waits()
    return blocks


def _attach(output: Fence, blocks: list[Block]) -> None:
    if not blocks or blocks[-1].output is not None:
        raise PageError(
            output.opening.origin, "an output that no Python block stands before"
        )
    mark = blocks[-1].mark
    if mark and mark.condition is None:
        raise PageError(
            output.opening.origin, "the output of a block that is never run"
        )
    blocks[-1].output = output


class _Marks:
    """The mark that waits for the fence below it."""

    def __init__(self) -> None:
        self.waiting: tuple[Line, Mark] | None = None

    def read(self, lines: Iterable[Line]) -> None:
        """Look for marks between two fences."""
        for line in lines:
            comment = _COMMENT.match(line)
            if comment:
                self.none_waits()
                self.waiting = line, _parse(line, comment["text"])
            elif line.strip():
                self.none_waits()

    def none_waits(self) -> None:
        """Complain of a mark that something else than a Python block follows."""
        if self.waiting:
            raise PageError(self.waiting[0].origin, "no Python block follows this mark")

    def take(self) -> Mark | None:
        """Hand out the mark that waits, once."""
        mark = self.waiting[1] if self.waiting else None
        self.waiting = None
        return mark


def _parse(line: Line, text: str) -> Mark:
    """Read `pytest.mark.skip(reason="…")` or `pytest.mark.skipif(…, reason="…")`."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        call = None
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args):
            reasons = [k.value for k in call.keywords if k.arg == "reason"]
            known = ast.unparse(owner) == "pytest.mark" and len(call.keywords) <= 1
            wanted = {"skip": 0, "skipif": 1}.get(name)
            if known and wanted == len(args):
                reason = _text(reasons[0]) if reasons else ""
                if not reason:
                    raise PageError(line.origin, f"no reason is given: {_HOW}")
                return Mark(reason, _condition(args[0]) if args else None)
    raise PageError(
        line.origin, f"not accepted in a page: {_HOW}; to show an error, catch it"
    )


def _condition(node: ast.expr) -> str:
    return _text(node) or ast.unparse(node)


def _text(node: ast.expr) -> str:
    """Return the text of a string constant, else an empty string."""
    value = node.value if isinstance(node, ast.Constant) else None
    return value.strip() if isinstance(value, str) else ""


class _Modules(dict[str, Any]):
    """A namespace in which each name is the module of that name."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return importlib.import_module(name)
