"""A module of the package as statements that can be taken out one by one."""

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_NOT_COPIED = {"__all__"}
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


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
class Reference:
    """A place where code names something of its module."""

    node: ast.Name
    late: bool  # read when a function runs, not when the module is imported
    local: frozenset[str]  # names that mean something else there


@dataclass(frozen=True)
class Statement:
    """A statement at the top level; `first` is where the comments above it begin."""

    node: ast.stmt
    first: int
    last: int

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
        return frozenset(_bound([self.node]))

    @functools.cached_property
    def references(self) -> list[Reference]:
        """Every place in it that reads a name of the module, or of Python."""
        reader = _Reader()
        reader.visit(self.node)
        return reader.found

    @functools.cached_property
    def changes(self) -> frozenset[str]:
        """The names whose values it changes, as `TABLE["x"] = f` does."""
        targets: list[ast.expr] = getattr(self.node, "targets", [])
        target = getattr(self.node, "target", None)
        targets = [*targets, target] if target is not None else targets
        roots = set()
        for each in targets:
            root = each
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if isinstance(root, ast.Name) and root is not each:
                roots.add(root.id)
        return frozenset(roots)


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
        """The code of the module: no docstring, no imports, and no `__all__`."""
        body = self.tree.body[1:] if self.docstring else self.tree.body
        every = [Statement(x, self._first(x), x.end_lineno or 0) for x in body]
        code = [each for each in every if not each.imports and not each.for_types]
        return [each for each in code if not each.defines & _NOT_COPIED]

    def is_none(self, name: str) -> bool:
        """Whether it sets a name to None at its top level."""
        values = [
            getattr(x.node, "value", 0) for x in self.statements if name in x.defines
        ]
        return any(isinstance(x, ast.Constant) and x.value is None for x in values)

    def defines(self, name: str) -> bool:
        """Whether it defines a name at its top level."""
        return any(name in each.defines for each in self.statements)

    @functools.cached_property
    def imported(self) -> dict[str, Import]:
        """The names that the module imports at its top level, for types too."""
        return {
            found.here: found
            for node in self.tree.body
            if isinstance(node, ast.Import | ast.ImportFrom | ast.If | ast.Try)
            for found in self.imports(node)
        }

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

    def _first(self, node: ast.stmt) -> int:
        """Return where a statement begins, with the comments that touch it."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        while first > 1 and self.lines[first - 2].startswith("#"):
            first -= 1
        return first

    def _absolute(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that `from … import` names."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*parts, node.module] if node.module else parts)


class _Reader(ast.NodeVisitor):
    """Finds names that no scope around them binds."""

    def __init__(self) -> None:
        self.found: list[Reference] = []
        self.local: frozenset[str] = frozenset()  # of the functions around
        self.own: frozenset[str] = frozenset()  # of the class right around
        self.late = False

    def visit_Name(self, node: ast.Name) -> None:
        bound = node.id in self.local or node.id in self.own
        if isinstance(node.ctx, ast.Load) and not bound:
            self.found.append(Reference(node, self.late, self.local | self.own))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for each in [*node.decorator_list, node.args, node.returns]:
            if each is not None:
                self.visit(each)
        self._inside(node, node.body, late=True)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._inside(node, [node.body], late=True)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(each)
        before, self.own = self.own, frozenset(_bound(node.body))
        for statement in node.body:
            self.visit(statement)
        self.own = before

    def _comprehension(self, node: _Comprehension) -> None:
        targets = _bound([each.target for each in node.generators])
        before, self.local = self.local, self.local | frozenset(targets)
        self.generic_visit(node)
        self.local = before

    visit_ListComp = visit_SetComp = _comprehension
    visit_DictComp = visit_GeneratorExp = _comprehension

    def _inside(self, node: _Scope, body: Iterable[ast.AST], late: bool) -> None:
        body = list(body)
        arguments = {x.arg for x in ast.walk(node.args) if isinstance(x, ast.arg)}
        outside = {
            name
            for each in body
            for inner in ast.walk(each)
            if isinstance(inner, ast.Global)
            for name in inner.names
        }
        local = (arguments | set(_bound(body))) - outside
        before = self.local, self.own, self.late
        self.local, self.own, self.late = self.local | local, frozenset(), late
        for each in body:
            self.visit(each)
        self.local, self.own, self.late = before


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that statements bind in the scope they stand in."""
    for node in nodes:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    yield alias.asname or alias.name.partition(".")[0]
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Lambda() | ast.ListComp() | ast.SetComp():
                pass
            case ast.DictComp() | ast.GeneratorExp():
                pass
            case _:
                if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
                    yield from [node.name] if node.name else []
                yield from _bound(ast.iter_child_nodes(node))
