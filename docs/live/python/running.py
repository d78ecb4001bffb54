"""Run a reader's code as a notebook runs a cell, and show what it prints and raises.

It travels beside the package, as reader.py does.
"""

import ast
import builtins
import io
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import numpy as np

FILE, ABOVE = "<your code>", "<above your code>"
LIMIT = 20_000  # characters that one run may print

Names = dict[str, Any]


class Paper(io.TextIOBase):
    """What is printed: it is handed on at once, and cut at `LIMIT`."""

    def __init__(self, show: Callable[[str], object]) -> None:
        self.show, self.left = show, LIMIT

    def writable(self) -> bool:
        """Say that it is."""
        return True

    def write(self, text: str) -> int:
        """Hand a text on."""
        if self.left > 0:
            self.show(text[: self.left])
            if len(text) >= self.left:
                self.show(f"\n… cut after {LIMIT:,} characters.\n")
            self.left -= len(text)
        return len(text)


def nobody(*_: object) -> str:
    """Stand in for `input`."""
    raise RuntimeError("nobody can answer input() here: write the value into the code")


@contextmanager
def shown_by(show: Callable[[str], object]) -> Iterator[None]:
    """Hand on what is printed; `input` raises, and how NumPy prints is set back."""
    paper, was = Paper(show), builtins.input
    builtins.input = nobody
    try:
        with redirect_stdout(paper), redirect_stderr(paper), np.printoptions():
            yield
    finally:
        builtins.input = was


def run(source: str, show: Callable[[str], object], before: str = "") -> bool:
    """Run code below what it needs of its page; say whether it came to its end."""
    with shown_by(show):
        return executed(source, before) is not None


def executed(source: str, before: str = "") -> Names | None:
    """Run code as a notebook runs a cell; None if it raises, which is shown."""
    for file, text in ((ABOVE, before), (FILE, source)):
        lines = text.splitlines(keepends=True)
        linecache.cache[file] = (len(text), None, lines, file)
    names: Names = {"__name__": "__main__"}
    try:
        exec(compile(before, ABOVE, "exec"), names)
        body = ast.parse(source, FILE).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), FILE, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), FILE, "eval"), names)
            if value is not None:
                print(repr(value))
    except BaseException as error:  # noqa: BLE001 - SystemExit ends no worker
        print(told(error), end="")
        return None
    return names


def told(error: BaseException) -> str:
    """Return a traceback of the reader's own lines, and of those above them."""
    every = traceback.extract_tb(error.__traceback__)
    frames = [x for x in every if x.filename in (FILE, ABOVE)]
    lines = ["Traceback:\n", *traceback.format_list(frames)] if frames else []
    lines += traceback.format_exception_only(error)
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        lines.append("Only NumPy runs in the page. In a shell, torch does.\n")
    if isinstance(error, MemoryError):
        lines.append("The page lets Python have 512 MB.\n")
    return "".join(lines)
