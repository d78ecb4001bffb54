"""A module of the package as statements that can be taken out one by one."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Import:
    """One name that a module imports."""

    source: str  # the module it is from
    name: str  # there; empty for `import source`
    here: str  # the name it gets
    node: ast.Import | ast.ImportFrom

    @property
    def package(self) -> str:
        """The package it is from."""
        return self.source.partition(".")[0]


@dataclass(frozen=True)
class Statement:
    """A statement at the top level; `first` is where the comments above it begin."""

    node: ast.stmt
    first: int
    last: int
    lines: frozenset[int]  # of the code, without blank lines

    @property
    def imports(self) -> bool:
        """Whether it is an import."""
        return isinstance(self.node, ast.Import | ast.ImportFrom)

    @property
    def for_types(self) -> bool:
        """Whether it is there for type checkers only."""
        test = self.node.test if isinstance(self.node, ast.If) else None
        return test is not None and "TYPE_CHECKING" in ast.unparse(test)

    @functools.cached_property
    def defines(self) -> frozenset[str]:
        """The names that it binds in the module."""
        return frozenset(_bound(self.node))

    @functools.cached_property
    def uses(self) -> frozenset[str]:
        """Every name that appears in it."""
        names = (node for node in ast.walk(self.node) if isinstance(node, ast.Name))
        return frozenset(name.id for name in names)


class Module:
    """The source of one module."""

    def __init__(self, root: Path, path: Path) -> None:
        self.path = path
        parts = path.relative_to(root).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.lines = path.read_text("utf-8").split("\n")
        self.tree = ast.parse("\n".join(self.lines), str(path))

    @functools.cached_property
    def docstring(self) -> str:
        """What the module says of itself."""
        return ast.get_docstring(self.tree) or ""

    @functools.cached_property
    def statements(self) -> list[Statement]:
        """The statements of the module, without its docstring and `__all__`."""
        found, end = [], 0
        for node in self.tree.body:
            assert node.end_lineno is not None
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            start = min([node.lineno, *(each.lineno for each in decorators)])
            inside = range(start, node.end_lineno + 1)
            code = (number for number in inside if self.lines[number - 1].strip())
            statement = Statement(node, end + 1, node.end_lineno, frozenset(code))
            end = node.end_lineno
            is_docstring = self.docstring and node is self.tree.body[0]
            if not is_docstring and "__all__" not in statement.defines:
                found.append(statement)
        return found

    def imports(self, node: ast.AST) -> Iterator[Import]:
        """Yield the names that a statement imports, also deep inside it."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom):
                source = self._absolute(inner)
                for alias in inner.names:
                    here = alias.asname or alias.name
                    yield Import(source, alias.name, here, inner)
            elif isinstance(inner, ast.Import):
                for alias in inner.names:
                    here = alias.asname or alias.name.partition(".")[0]
                    yield Import(alias.name, "", here, inner)

    def text(self, statement: Statement, replace: dict[int, list[str]]) -> str:
        """Return the lines of a statement; `replace` has other text for some."""
        lines = []
        for number in range(statement.first, statement.last + 1):
            line = self.lines[number - 1]
            lines += replace.get(number, [line])
        return "\n".join(lines)

    def _absolute(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that `from … import` names."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, node.module] if node.module else parts)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in the scope it stands in."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Lambda():
            return
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _bound(child)
