"""All that some definitions of the package need, found by following names.

A definition is a statement at the top level of a module: a function, a class, an
assignment. It comes with every definition whose name its code reads, in its own module
or in one that it is imported from. In one file a name has one meaning; where two
modules, Python itself or the demonstration give it another, the copy cannot be right.
"""

import ast
import builtins
import functools
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.definitions import parsed, span_of
from engine.pages.blocks import Origin, PageError
from engine.pages.reading import Page


@dataclass(frozen=True, order=True)
class Import:
    """One name that a module imports."""

    source: str  # the module it is from
    name: str  # there; empty for `import source`
    here: str  # the name it gets
    line: int = field(compare=False)

    @property
    def package(self) -> str:
        """The package it is from."""
        return self.source.partition(".")[0]

    @property
    def meaning(self) -> str:
        """What it stands for: `import a.b as c` and `from a import b as c` agree."""
        if self.name:
            return f"{self.source}.{self.name}"
        return self.package if self.here == self.package else self.source

    @property
    def renamed(self) -> str:
        """How its import statement names it."""
        plain = self.here == (self.name or self.package)
        return f"{self.name or self.source}{'' if plain else f' as {self.here}'}"


def imports_of(node: ast.AST) -> Iterator[Import]:
    """Yield what a statement imports."""
    if isinstance(node, ast.ImportFrom):
        source = "." * node.level + (node.module or "")
        for each in node.names:
            yield Import(source, each.name, each.asname or each.name, node.lineno)
    elif isinstance(node, ast.Import):
        for each in node.names:
            here = each.asname or each.name.partition(".")[0]
            yield Import(each.name, "", here, node.lineno)


@functools.lru_cache(maxsize=4096)
def names_in(code: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the global names that statements read, and those that they bind."""
    top = symtable.symtable(code, "a definition", "exec")
    tables, reads = [top], set()
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_referenced() if table is top else symbol.is_global():
                reads.add(symbol.get_name())
    bound = (x for x in top.get_symbols() if x.is_assigned() or x.is_imported())
    return frozenset(reads), frozenset(symbol.get_name() for symbol in bound)


class Module:
    """The source of one module, statement by statement."""

    def __init__(self, source: str) -> None:
        tree, self.lines = parsed(source)
        self.docstring = ast.get_docstring(tree) or ""
        body = tree.body[1:] if self.docstring else tree.body
        self.imported = {x.here: x for node in body for x in imports_of(node)}
        self.statements = [node for node in body if not _left_out(node)]
        spans = (span_of(node, self.lines) for node in self.statements)
        self.texts = ["\n".join(self.lines[a - 1 : b]) for a, b in spans]
        self.binds: dict[str, list[int]] = {}
        for number, text in enumerate(self.texts):
            for name in names_in(text)[1]:
                self.binds.setdefault(name, []).append(number)

    def changing(self, name: str) -> Iterator[int]:
        """Yield statements that bind nothing, as `TABLE["x"] = f`, and read a name."""
        for number, text in enumerate(self.texts):
            reads, binds = names_in(text)
            if name in reads and not binds:
                yield number


def _left_out(node: ast.stmt) -> bool:
    """Whether it is an import, for type checkers only, or the list of public names."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assign([ast.Name("__all__")]):
            return True
        case ast.If(test=test):
            return "TYPE_CHECKING" in ast.unparse(test)
    return False


_read = functools.lru_cache(maxsize=512)(Module)


class Closure:
    """Definitions that make a whole, and the imports they need."""

    def __init__(self, page: Page, offered: dict[Path, set[int] | None]) -> None:
        """Take what stands on these lines of each module, or all of it."""
        self.page, self.project, self.offered = page, page.project, offered
        self.chosen: dict[Path, set[int]] = {}  # indices of statements
        self.imports: set[Import] = set()
        self._meanings: dict[str, str] = {}
        for path, lines in offered.items():
            for number, node in enumerate(self.module(path).statements):
                span = range(node.lineno, (node.end_lineno or 0) + 1)
                if lines is None or not lines.isdisjoint(span):
                    self._take(path, number)

    def module(self, path: Path) -> Module:
        """Return a module, read once for each state of its file."""
        return _read(path.read_text("utf-8"))

    def claim(self, name: str, meaning: str) -> None:
        """Note what a name stands for in the file, where it has one meaning."""
        before = self._meanings.setdefault(name, meaning)
        if before != meaning:
            problem = f"`{name}` is {before}, and {meaning}"
            raise PageError(self.page.top, f"{problem}: one file needs two names")

    def add_import(self, found: Import, where: str) -> None:
        """Take an import of another package."""
        if found.package in ("", self.project.package):
            problem = f"{where} imports {found.source}, which a copy cannot"
            raise PageError(self.page.top, problem)
        self.claim(found.here, found.meaning)
        self.imports.add(found)

    def _take(self, path: Path, number: int) -> None:
        """Take a statement, and what it needs."""
        module, chosen = self.module(path), self.chosen.setdefault(path, set())
        if number in chosen:
            return
        chosen.add(number)
        for inner in ast.walk(module.statements[number]):
            for found in imports_of(inner):
                if found.package in ("", self.project.package):
                    raise self._error(path, found.line, "at the top of the module")
        reads, binds = names_in(module.texts[number])
        for name in sorted(reads | binds):
            self._follow(path, name)
        for name in binds:
            for other in module.changing(name):
                self._take(path, other)
        future = (x for x in module.imported.values() if x.source == "__future__")
        self.imports.update(future)

    def _follow(self, path: Path, name: str) -> bool:
        """Take what a name of a module stands for; say whether it defines the name."""
        module = self.module(path)
        found = module.imported.get(name)
        if name in module.binds:
            self.claim(name, f"{self.project.relative(path)}:{name}")
            for number in module.binds[name]:
                self._take(path, number)
        elif found is None:
            if hasattr(builtins, name):
                self.claim(name, f"Python's own {name}")
            return False
        elif found.package not in ("", self.project.package):
            self.add_import(found, self.project.relative(path))
        else:
            there = self._file(found)
            if there is None or found.name != found.here:
                how = "as in `from package.module import name`"
                raise self._error(path, found.line, how)
            if not self._follow(there, name):
                place = f"{self.project.relative(path)}:{found.line}"
                problem = f"{place}: {found.source} does not define {name}"
                raise PageError(self.page.top, problem)
        return True

    def _error(self, path: Path, line: int, how: str) -> PageError:
        place = Origin(Path(self.project.relative(path)), line)
        problem = f"{place} has an import that one file cannot hold"
        return PageError(self.page.top, f"{problem}: import definitions, {how}")

    def _file(self, found: Import) -> Path | None:
        """Return the file of the package in which an imported name is defined."""
        folder = self.project.root.joinpath(*found.source.split("."))
        submodule = folder / found.name
        if not found.name or found.package == "" or submodule.is_dir():
            return None
        if submodule.with_suffix(".py").is_file():
            return None
        module = folder.with_suffix(".py")
        return module if module.is_file() else folder / "__init__.py"

    def order(self) -> list[Path]:
        """Return the modules as Python would import them: each after what it needs."""
        done: dict[Path, bool] = {}

        def visit(path: Path) -> None:
            if path not in done:
                done[path] = False
                for found in self.module(path).imported.values():
                    if found.package == self.project.package:
                        below = self._file(found)
                        visit(below) if below else None
                done[path] = done.pop(path) or path in self.chosen

        for path in self.chosen:
            visit(path)
        return [path for path, needed in done.items() if needed]

    def texts(self, path: Path) -> list[str]:
        """Return the chosen statements of a module; short ones stay together."""
        module, parts, last = self.module(path), list[str](), None
        for number in sorted(self.chosen[path]):
            node = module.statements[number]
            simple = not isinstance(node, ast.ClassDef | ast.FunctionDef)
            text = module.texts[number]
            above = module.statements[number - 1].end_lineno or 0
            if simple and last == number - 1 and module.lines[above].strip():
                parts[-1] += f"\n{text}"
            else:
                parts.append(text)
            last = number
        return parts
