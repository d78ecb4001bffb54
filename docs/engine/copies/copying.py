"""What a copy takes of the package: what it offers, and all that this needs.

docs/includes/plain.py says what stands in a copy instead of the package's own: a name
that this file defines or imports is taken from there, unless the chapter offers the
package's. So a copy is short, and holds no fast code path.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.copies.modules import Import, Module, Reference, Statement
from engine.pages.blocks import PageError
from engine.pages.reading import Page

Entry = tuple[str, str, str]  # an import: the module, the name there or "", and here
_Key = tuple[Path, int]  # a statement: its module, and where in it
PLAIN = Path("docs", "includes", "plain.py")
TWIN = "reference"  # the subpackage that repeats the names of the others, in NumPy


@dataclass(frozen=True)
class _Target:
    """What a name stands for: something of the package, or of another."""

    text: str  # how a copy names it
    path: Path | None = None
    entry: Entry | None = None


class Copy:
    """Statements of the package that make a whole, and the imports they need."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.project = page.project
        self.modules: dict[Path, Module] = {}
        self.chosen: dict[Path, set[int]] = {}  # indices of statements
        self.offered: dict[Path, set[int] | None] = {}  # lines of it, or all
        self.twin = page.project.root / page.project.package / TWIN
        plain = page.project.root / PLAIN
        self.plain = Module(page.project.root, plain) if plain.is_file() else None
        self.edits: dict[_Key, list[tuple[ast.AST, str]]] = {}
        self.entries: set[Entry] = set()
        self.future: set[str] = set()
        self.early: dict[Path, list[Path]] = {}  # what a module needs when imported
        self.needs: dict[Path, list[Path]] = {}  # or at any time

    def module(self, path: Path) -> Module:
        """Return a module, read once."""
        if path not in self.modules:
            self.modules[path] = Module(self.project.root, path)
        return self.modules[path]

    def offer(self, offered: dict[Path, set[int] | None]) -> None:
        """Take what stands on these lines of each module, or all of it."""
        self.offered = offered
        for path in offered:
            module = self.module(path)
            self.needs.setdefault(path, [])
            for number, statement in enumerate(module.statements):
                if self.offers(path, statement):
                    self._take(module, number)

    def _take(self, module: Module, number: int) -> None:
        """Take a statement, and what it needs."""
        chosen = self.chosen.setdefault(module.path, set())
        if number in chosen:
            return
        chosen.add(number)
        statement = module.statements[number]
        for reference in statement.references:
            self._follow(module, number, reference)
        for found in module.imports(statement.node):
            if found.package == self.project.package:
                local = frozenset(_bound_anywhere(statement.node))
                target = self._package_target(module, found, local)
                self._need(module, target, late=True)
                key = module.path, number
                text = f"{found.here} = {target.text}"
                text = "" if target.text == found.here else text
                self.edits.setdefault(key, []).append((found.node, text))
        for other, each in enumerate(module.statements):
            if each.changes & statement.defines:
                self._take(module, other)
        future = (x for x in module.imported.values() if x.source == "__future__")
        self.future |= {found.name for found in future}

    def _follow(self, module: Module, number: int, reference: Reference) -> None:
        """Provide what a place in a statement names, and rename it if one must."""
        name = reference.node.id
        plain = self.plain
        if plain and self._stands_in(plain, module, name) and plain.is_none(name):
            node = _left_out(module.statements[number].node, reference.node)
            if node is None:
                problem = f"{PLAIN} leaves {name} out, which is not called alone"
                raise PageError(self.page.top, problem)
            self.edits.setdefault((module.path, number), []).append((node, ""))
            return
        target = self._resolve(module, name, reference.local)
        if target is None:
            return
        self._need(module, target, reference.late)
        if target.text == name:
            return
        if target.text.partition(".")[0] in reference.local:
            place = f"{self.project.relative(module.path)}:{reference.node.lineno}"
            problem = f"{place}: in a copy `{name}` becomes {target.text}"
            raise PageError(
                self.page.top, f"{problem}, which has another meaning there: rename it"
            )
        key = module.path, number
        self.edits.setdefault(key, []).append((reference.node, target.text))

    def _need(self, module: Module, target: _Target, late: bool) -> None:
        if target.entry:
            self.entries.add(target.entry)
        if target.path and target.path != module.path:
            self.needs.setdefault(module.path, []).append(target.path)
            if not late:
                self.early.setdefault(module.path, []).append(target.path)

    def _resolve(
        self, module: Module, name: str, local: frozenset[str] = frozenset()
    ) -> _Target | None:
        """Take what a name of a module stands for; None for a name of Python's own."""
        if self.plain is not None and self._stands_in(self.plain, module, name):
            return self._resolve(self.plain, name, local)
        if module is self.plain and module.defines(name):
            for path in self.offered:  # what the chapter offers serves plain.py too
                if self._offers(path, name):
                    return self._resolve(self.module(path), name, local)
        found = [n for n, x in enumerate(module.statements) if name in x.defines]
        for number in found:
            self._take(module, number)
        if found:
            return _Target(name, module.path)
        imported = module.imported.get(name)
        if imported is None or imported.source == "__future__":
            return None
        if imported.package != self.project.package:
            return _Target(name, None, (imported.source, imported.name, name))
        if _for_types(module, imported):
            return None  # an annotation, which Python does not evaluate
        return self._package_target(module, imported, local)

    def _stands_in(self, plain: Module, module: Module, name: str) -> bool:
        """Whether plain.py has something for a name that means the package's own."""
        if module is plain or module.path.is_relative_to(self.twin):
            return False
        outside = plain.imported.get(name)
        ours = outside is None or outside.package == self.project.package
        if ours and not plain.defines(name):
            return False
        imported = module.imported.get(name)
        if imported is not None:
            return imported.package == self.project.package and not self._offers(
                self._file(imported.source), name
            )
        return module.defines(name) and not self._offers(module.path, name)

    def offers(self, path: Path, statement: Statement) -> bool:
        """Whether the chapter offers a statement itself."""
        lines = self.offered.get(path, set())
        span = range(statement.first, statement.last + 1)
        return lines is None or not lines.isdisjoint(span)

    def teaches(self, path: Path) -> bool:
        """Whether the chapter offers something of a module, and is about it."""
        about = self.page.meta.get("modules") or [self.project.relative(path)]
        return path in self.offered and self.project.relative(path) in about

    def _offers(self, path: Path, name: str) -> bool:
        """Whether the chapter offers a definition itself."""
        statements = self.module(path).statements
        return any(self.offers(path, x) for x in statements if name in x.defines)

    def _package_target(
        self, module: Module, found: Import, local: frozenset[str] = frozenset()
    ) -> _Target:
        """Return what a name imported from the package stands for, and take it."""
        path = self._file(found.source)
        below = self.project.root.joinpath(*found.source.split("."), f"{found.name}.py")
        place = f"{self.project.relative(module.path)}:{found.node.lineno}"
        if not found.name or below.is_file():
            how = "import names, as in `from package.module import name`"
            problem = f"{place} imports a module, which one file cannot hold: {how}"
            raise PageError(self.page.top, problem)
        target = self._resolve(self.module(path), found.name, local)
        if target is None:
            problem = f"{place}: {found.source} does not define {found.name}"
            raise PageError(self.page.top, problem)
        return target

    def _file(self, dotted: str) -> Path:
        file = self.project.root.joinpath(*dotted.split("."))
        path = file.with_suffix(".py")
        return path if path.is_file() else file / "__init__.py"

    def order(self) -> list[Path]:
        """Put each module below those that it needs, above all when it is imported."""
        return _sorted_by(_sorted_by(list(self.chosen), self.needs), self.early)


def _bound_anywhere(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that mean something else somewhere in a statement."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def _left_out(tree: ast.AST, name: ast.Name) -> ast.AST | None:
    """Return the decorator, or the statement that is a call of this name alone."""
    for node in ast.walk(tree):
        if name in getattr(node, "decorator_list", []):
            return name
        match node:
            case ast.Expr(value=ast.Call(func=function)) if function is name:
                return node
    return None


def _for_types(module: Module, found: Import) -> bool:
    """Whether a name is imported for type checkers only."""
    return not any(found.node is node for node in module.tree.body)


def _sorted_by(paths: list[Path], needs: dict[Path, list[Path]]) -> list[Path]:
    """Put what each needs above it; where two need each other, keep the order."""
    done: dict[Path, None] = {}
    seen: set[Path] = set()

    def visit(path: Path) -> None:
        if path not in seen:
            seen.add(path)
            for each in needs.get(path, []):
                visit(each)
            if path in paths:
                done[path] = None

    for path in paths:
        visit(path)
    return list(done)
