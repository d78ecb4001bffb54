"""Snippets that name a definition: `--8<-- "package/file.py:Class.method"`.

A Markdown extension on top of pymdownx.snippets. The source carries no markers: what a
name stands for is found in the syntax tree: it cannot be misspelt, nor end at the wrong
line. The site and the tests use it alike.

| after the colon | stands for |
|---|---|
| `name` | a function, class or assignment at the top level, and the comment above |
| `Class.method` | a method, or another definition inside one |
| `Class.class` | a class up to its `forward`: what it is, and what it is made of |
| `imports` | the imports of the file |
| `one,two` | both, with the blank lines of the file between neighbours |
"""

import ast
import difflib
import functools
import itertools
import re
from typing import Any

from pymdownx.snippets import (  # type: ignore[import-untyped]
    SnippetExtension,
    SnippetMissingError,
    SnippetPreprocessor,
)

_TARGET = re.compile(
    r"(?P<path>.+\.py)(?P<names>:[a-zA-Z_][\w.]*(?:,[a-zA-Z_][\w.]*)*)$"
)
Span = tuple[int, int]  # the first and the last line, counted from 1


class NoDefinition(SnippetMissingError):  # type: ignore[misc]
    """A file does not define what a page names."""


def find_spans(source: str, names: str) -> list[Span]:
    """Return the lines of each definition in `names`, which commas separate."""
    tree, lines = parsed(source)
    return [_find(tree, lines, name) for name in names.split(",")]


def find_nodes(source: str, name: str) -> list[ast.stmt]:
    """Return the statements that define `name`: a class, and a method in it."""
    return _path_to(parsed(source)[0], name)


@functools.lru_cache(maxsize=64)
def parsed(source: str) -> tuple[ast.Module, list[str]]:
    """Return the syntax tree of a file, and its lines."""
    return ast.parse(source), source.split("\n")


def _find(tree: ast.Module, lines: list[str], name: str) -> Span:
    if name == "imports":
        below = tree.body[ast.get_docstring(tree) is not None :]
        nodes = list(itertools.takewhile(_imports, below))
        if not nodes:
            raise NoDefinition("the file imports nothing")
        return span_of(nodes[0], lines)[0], nodes[-1].end_lineno or 0
    if name.endswith(".class"):
        node = _path_to(tree, name.removesuffix(".class"))[-1]
        if isinstance(node, ast.ClassDef):
            return span_of(node, lines)[0], _end_of_head(node)
    return span_of(_path_to(tree, name)[-1], lines)


def _path_to(tree: ast.Module, name: str) -> list[ast.stmt]:
    path: list[ast.stmt] = []
    body = tree.body
    for part in name.split("."):
        found = [node for node in body if part in _bound(node)]
        if not found:
            raise NoDefinition(f"`{name}` is not defined there; {_near(tree, name)}")
        # Of overloads, what is run stands last; of a property, what reads it first.
        path.append(next((x for x in found if not _is_overload(x)), found[-1]))
        body = getattr(path[-1], "body", [])
    return path


def _near(tree: ast.Module, name: str) -> str:
    """Name what may have been meant."""
    known = [each for node in tree.body for each in _bound(node)]
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            known += [f"{node.name}.{x}" for inner in node.body for x in _bound(inner)]
    near = difflib.get_close_matches(name, dict.fromkeys(known), n=3, cutoff=0.3)
    return f"near it: {', '.join(near) or 'nothing'}"


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return list(getattr(node, "decorator_list", []))


def _is_overload(node: ast.stmt) -> bool:
    return any(ast.unparse(x).endswith("overload") for x in _decorators(node))


def _end_of_head(node: ast.ClassDef) -> int:
    """Return the last line above `forward`, or of `__init__` where there is none."""
    ends = {name: each.end_lineno for each in node.body for name in _bound(each)}
    above = itertools.takewhile(lambda each: "forward" not in _bound(each), node.body)
    parts = list(above) if "forward" in ends else []
    last = parts[-1].end_lineno if parts else ends.get("__init__")
    return last or node.end_lineno or 0


def first_line(node: ast.stmt) -> int:
    """Return the line at which a statement begins, decorators included."""
    return min([node.lineno, *(each.lineno for each in _decorators(node))])


def span_of(node: ast.stmt, lines: list[str]) -> Span:
    """Return the lines of a statement, its decorators and the comments right above."""
    first = first_line(node)
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first, node.end_lineno or 0


def _imports(node: ast.stmt) -> bool:
    for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return for_types or isinstance(node, ast.Import | ast.ImportFrom)


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            parts = (part for each in node.targets for part in ast.walk(each))
            names = (part for part in parts if isinstance(part, ast.Name))
            return [each.id for each in names if isinstance(each.ctx, ast.Store)]
        case ast.AnnAssign(target=ast.Name() as target):
            return [target.id]
    return []


class DefinitionPreprocessor(SnippetPreprocessor):  # type: ignore[misc]
    """The preprocessor of snippets, which looks definitions up in Python files."""

    def split_path(self, path: str) -> tuple[str | None, str | None, str | None]:
        """Split `file.py:Class.method`; what it is for other files is pymdownx's."""
        target = _TARGET.fullmatch(path)
        if target:
            return target["path"], None, target["names"]
        parts: tuple[str | None, str | None, str | None] = super().split_path(path)
        return parts

    def read_lines(self, path: str) -> list[str]:
        """Read a file, and remember which it was."""
        self._path = str(path)
        lines: list[str] = super().read_lines(path)
        return lines

    def extract_section(self, section: str, lines: list[str]) -> list[str]:
        """Return the lines of a definition, or of a marked section elsewhere."""
        if not self._path.endswith(".py"):
            marked: list[str] = super().extract_section(section, lines)
            return marked
        try:
            spans = find_spans("\n".join(lines), section)
        except NoDefinition as error:
            raise NoDefinition(f"{self._path}: {error}") from None
        chosen: list[str] = []
        end = len(lines)
        for first, last in spans:
            above = first - 1
            while above > end and not lines[above - 1].strip():
                above -= 1  # the blank lines between neighbours
            chosen += [*lines[above : first - 1], *self.dedent(lines[first - 1 : last])]
            end = last
        return chosen


class DefinitionExtension(SnippetExtension):  # type: ignore[misc]
    """pymdownx.snippets, with definitions as sections."""

    def extendMarkdown(self, md: Any) -> None:
        """Register the preprocessor."""
        self.md = md
        md.registerExtension(self)
        self.snippet = DefinitionPreprocessor(self.getConfigs(), md)
        md.preprocessors.register(self.snippet, "snippet", 32)


def makeExtension(**options: Any) -> DefinitionExtension:
    """Return the extension, as Markdown looks for it."""
    return DefinitionExtension(**options)
