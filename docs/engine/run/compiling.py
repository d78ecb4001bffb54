"""Compile blocks so that every line keeps the file and number it was written at."""

import __future__

import ast
import itertools
import linecache
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

from _pytest.assertion.rewrite import rewrite_asserts

from engine.definitions import first_line
from engine.pages.blocks import Block, Line, PageError
from engine.pages.reading import Page
from engine.project import ENGINE

_ANNOTATIONS = __future__.annotations.compiler_flag


class Compiler:
    """Compiles the blocks of one page, one after the other.

    `linecache`, where tracebacks and `inspect.getsource` look, gets the page's own
    Python, each line at its true number.
    """

    def __init__(self, page: Path, length: int) -> None:
        self.page = page
        self._listing = ["\n"] * length
        self._future = 0  # `from __future__ import annotations` holds from there on

    def compile(self, lines: list[Line]) -> tuple[list[CodeType], CodeType | None]:
        """Compile the statements of a block, and its last line if it is an expression.

        A `SyntaxError` names the true file and line.
        """
        statements = _parse(lines)
        for line in lines:
            if line.origin.file == self.page:
                self._listing[line.origin.line - 1] = line + "\n"
        size = sum(map(len, self._listing))
        linecache.cache[str(self.page)] = (size, None, self._listing, str(self.page))
        last = statements[-1] if statements else None
        value = None
        if isinstance(last, ast.Expr):
            file = _settle(last, lines)
            value = self._code(ast.Expression(last.value), file)
            statements.pop()
        codes = [
            self._code(ast.Module(list(group), []), file)
            for file, group in itertools.groupby(
                statements, lambda statement: _settle(statement, lines)
            )
        ]
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


def _settle(statement: ast.stmt, lines: list[Line]) -> Path:
    """Give a statement its true positions, and return the file they are in."""
    first = first_line(statement)
    part = lines[first - 1 : statement.end_lineno]
    origins = [line.origin for line in part]
    code = [line.origin for line in part if line.strip()]
    if len({origin.file for origin in code}) > 1 or code != sorted(code):
        problem = "a statement is put together from pieces: embed it whole"
        raise PageError(origins[0], problem)
    node: Any
    for node in ast.walk(statement):
        if hasattr(node, "lineno"):
            node.lineno = origins[node.lineno - first].line
            node.end_lineno = origins[node.end_lineno - first].line
    return origins[0].file


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


class BlockFailed(Exception):
    """A block raised; the message is a traceback that begins in the page."""


def describe(error: BaseException, page: Page, block: Block) -> str:
    """Write the traceback of what a block raised, without the frames of the engine."""
    tb = error.__traceback__
    while tb and Path(tb.tb_frame.f_code.co_filename).is_relative_to(ENGINE):
        tb = tb.tb_next
    trace = traceback.TracebackException(type(error), error, tb)
    place = f"{page.path}:{block.line}"
    for frame in trace.stack:
        file = Path(frame.filename)  # the last of the page's or the package's own
        own = file.is_relative_to(page.project.root)
        if own and "site-packages" not in file.parts:
            place = f"{frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError) and not trace.stack:  # of the block itself
        place = f"{error.filename}:{error.lineno}"
    lines = "".join(trace.format_exception_only()).strip().splitlines()
    first = lines[-1 if isinstance(error, SyntaxError) else 0]
    return f"{place}: {first}\n\n{''.join(trace.format())}"
