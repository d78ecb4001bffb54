"""Compile blocks so that every line keeps the file and number it was written at."""

import __future__

import ast
import itertools
import linecache
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from _pytest.assertion.rewrite import rewrite_asserts

from engine.definitions import first_line
from engine.pages.blocks import Block, Line, Origin, indent_of
from engine.pages.reading import Page
from engine.project import ENGINE

_ANNOTATIONS = __future__.annotations.compiler_flag


class Compiler:
    """Compiles the blocks of one page, one after the other.

    `linecache`, where tracebacks and `inspect.getsource` look, gets a *listing* of the
    page: its own Python, each line at its true number, and below the last line a copy
    of what the blocks take from other files. The copy is for classes, which Python
    looks up in the file of their module, `__main__`, and for statements whose lines
    come from more than one file.
    """

    def __init__(self, page: Path, length: int) -> None:
        self.page = page
        self.copied: dict[int, Origin] = {}  # line of the copy: where it is from
        self._listing = [""] * length
        self._future = 0  # `from __future__ import annotations` holds from there on

    def compile(self, lines: list[Line]) -> tuple[list[CodeType], CodeType | None]:
        """Compile the statements of a block, and its last line if it is an expression.

        A `SyntaxError` names the true file and line.
        """
        statements = _parse(lines)
        for line in lines:
            if line.origin.file == self.page:
                self._listing[line.origin.line - 1] = line
        last = statements[-1] if statements else None
        value = None
        if isinstance(last, ast.Expr):
            file = self._settle(last, lines)
            value = self._code(ast.Expression(last.value), file)
            statements.pop()
        codes = [
            self._code(ast.Module(list(group), []), file)
            for file, group in itertools.groupby(
                statements, lambda statement: self._settle(statement, lines)
            )
        ]
        listing = [line + "\n" for line in self._listing]
        size = sum(map(len, listing))
        linecache.cache[str(self.page)] = (size, None, listing, str(self.page))
        return codes, value

    def _code(self, tree: ast.Module | ast.Expression, file: Path) -> CodeType:
        mode = "exec" if isinstance(tree, ast.Module) else "eval"
        asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
        if isinstance(tree, ast.Module) and asserts:
            rewrite_asserts(tree, b"")  # a bare assert says what was compared
        code: CodeType = compile(
            tree, str(file), mode, flags=self._future, dont_inherit=True
        )
        self._future |= code.co_flags & _ANNOTATIONS
        return code

    def _settle(self, statement: ast.stmt, lines: list[Line]) -> Path:
        """Give a statement its true positions, and return the file they are in."""
        first = first_line(statement)
        assert statement.end_lineno is not None
        part = lines[first - 1 : statement.end_lineno]
        origins = [line.origin for line in part]
        code = [line.origin for line in part if line.strip()]
        one_file = len({origin.file for origin in code}) == 1
        if one_file and code == sorted(code):
            if origins[0].file != self.page:
                self._copy(statement, first, part)
            _move(statement, first, origins, part)
            return origins[0].file
        for origin in origins:
            if origin.file == self.page:
                self._listing[origin.line - 1] = ""
        start = self._copy(statement, first, part)
        copies = [Origin(self.page, start + n) for n in range(len(part))]
        self.copied |= {
            copy.line: origin for copy, origin in zip(copies, origins, strict=True)
        }
        _move(statement, first, copies, part)
        return self.page

    def _copy(self, statement: ast.stmt, first: int, part: list[Line]) -> int:
        """Append a statement to the listing; return the number of its first line."""
        start = len(self._listing) + 1
        self._listing += [*part, ""]
        if sys.version_info >= (3, 13):  # where a class says at which line it begins
            for node in ast.walk(statement):
                if isinstance(node, ast.ClassDef):
                    _say_first_line(node, start + first_line(node) - first)
        return start


def _parse(lines: list[Line]) -> list[ast.stmt]:
    try:
        tree: Any = compile(
            "\n".join(lines), "block", "exec", ast.PyCF_ONLY_AST, dont_inherit=True
        )
    except SyntaxError as error:
        line = lines[min(error.lineno or 1, len(lines)) - 1]
        error.filename, error.lineno = str(line.origin.file), line.origin.line
        error.end_lineno = None
        raise
    return list(tree.body)


def _move(
    statement: ast.stmt, first: int, origins: list[Origin], part: list[Line]
) -> None:
    """Set the positions of a statement and of all that is in it."""
    shifts = [_shift(line, to) for line, to in zip(part, origins, strict=True)]
    node: Any
    for node in ast.walk(statement):
        if hasattr(node, "lineno"):
            start, end = node.lineno - first, node.end_lineno - first
            node.lineno, node.end_lineno = origins[start].line, origins[end].line
            node.col_offset += shifts[start]
            node.end_col_offset += shifts[end]


def _shift(line: Line, to: Origin) -> int:
    """Return by how much more the line is indented in its own file."""
    if line.origin != to or to.file.suffix != ".py":
        return 0
    return indent_of(linecache.getline(str(to.file), to.line)) - indent_of(line)


def _say_first_line(node: ast.ClassDef, line: int) -> None:
    name = ast.Name("__firstlineno__", ast.Store())
    after_docstring = 0 if ast.get_docstring(node) is None else 1
    say = ast.Assign([name], ast.Constant(line))
    ast.fix_missing_locations(ast.copy_location(say, node))
    node.body.insert(after_docstring, say)


class BlockFailed(Exception):
    """A block raised; the message is a traceback that begins in the page."""


def describe(
    error: BaseException, page: Page, block: Block, copied: Mapping[int, Origin]
) -> str:
    """Write the traceback of what a block raised, without the frames of the engine.

    `copied` says where the lines below the page's listing are from.
    """
    tb = error.__traceback__
    while tb and Path(tb.tb_frame.f_code.co_filename).is_relative_to(ENGINE):
        tb = tb.tb_next
    trace = traceback.TracebackException(type(error), error, tb)
    place = f"{page.path}:{block.line}"
    for index, frame in enumerate(trace.stack):
        origin = copied.get(frame.lineno or 0)
        if origin and frame.filename == str(page.path):
            true = str(origin.file), origin.line, frame.name
            frame = traceback.FrameSummary(*true, line=frame.line)
            trace.stack[index] = frame
        file = Path(frame.filename)  # the last of the page's or the package's own
        own = file.is_relative_to(page.project.root)
        if own and "site-packages" not in file.parts:
            place = f"{frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError) and not trace.stack:  # of the block itself
        place = f"{error.filename}:{error.lineno}"
    lines = "".join(trace.format_exception_only()).strip().splitlines()
    first = lines[-1 if isinstance(error, SyntaxError) else 0]
    return f"{place}: {first}\n\n{''.join(trace.format())}"
