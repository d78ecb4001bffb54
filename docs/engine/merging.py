"""Merge modules into one file, so that none imports from the package."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from engine.blocks import PageError
from engine.modules import Import, Module, Statement
from engine.reading import Page


class Merger:
    """Puts modules into one file, each once."""

    def __init__(
        self, page: Page, shown: dict[Path, set[int]], whole: set[Path]
    ) -> None:
        self.page = page
        self.package = page.project.package
        self.shown = shown
        self.whole = whole
        self.too_little: set[Path] = set()  # modules of which a part does not suffice
        self.sources: dict[Path, frozenset[str]] = {}  # and the names they give
        self.future: set[str] = set()
        self.imports: set[tuple[str, str, str]] = set()
        self.sections: list[str] = []
        self.bound: dict[str, tuple[str, str]] = {}

    def add(self, path: Path) -> None:
        """Append a module, below those that it imports from."""
        if path in self.sources:
            return
        module = Module(self.page.project.root, path)
        statements = self._choose(module)
        self.sources[path] = frozenset().union(*(s.defines for s in statements))
        uses = frozenset().union(*(s.uses for s in statements))
        above = [s for s in module.statements if s.imports]
        aliases = [
            line
            for statement in above
            for found in module.imports(statement.node)
            if found.here in uses or found.source == "__future__"
            for line in self._take(module, found)
        ]
        later: list[Import] = []
        texts = [self._code(module, each, later) for each in statements]
        for each in statements:
            self._claim(each.defines, module.name, ast.dump(each.node))
        self.sections.append(
            _section(module, self.page.project.relative(path), texts, aliases)
        )
        for found in later:  # imported inside a function, so needed only when it runs
            self._take(module, found)

    def _choose(self, module: Module) -> list[Statement]:
        """Return the embedded statements if they suffice, else all."""
        code = [each for each in module.statements if not each.imports]
        lines = self.shown.get(module.path)
        if lines is None or module.path in self.whole:
            return code
        part = [each for each in code if each.lines <= lines]
        rest = [each for each in code if not each.lines <= lines]
        given = frozenset().union(*(each.defines for each in part))
        used = frozenset().union(*(each.uses for each in part))
        lacking = frozenset().union(*(each.defines for each in rest)) - given
        if lacking & used or any(each.lines & lines for each in rest):
            self.too_little.add(module.path)
        return part

    def _take(self, module: Module, found: Import) -> list[str]:
        """Provide an imported name; return the line that renames it, if one must."""
        if found.source == "__future__":
            self.future.add(found.name)
        elif found.package != self.package:
            entry = (found.source, found.name, found.here)
            self.imports.add(entry)
            self._claim([found.here], module.name, repr(entry))
        else:
            path, name = self._home(module, found)
            self.add(path)
            if name not in self.sources[path]:
                self.too_little.add(path)
            if name != found.here:
                self._claim([found.here], module.name, name)
                return [f"{found.here} = {name}"]
        return []

    def _home(self, module: Module, found: Import) -> tuple[Path, str]:
        """Return the file that defines an imported name, and the name there."""
        root = self.page.project.root
        file = root.joinpath(*found.source.split("."))
        if found.name and not (file / f"{found.name}.py").is_file():
            path = file.with_suffix(".py")
            path = path if path.is_file() else file / "__init__.py"
            source = Module(root, path)
            for passed_on in source.imports(source.tree):
                if passed_on.here == found.name and passed_on.package == self.package:
                    return self._home(source, passed_on)
            return path, found.name
        how = "import names, as in `from package.module import name`"
        place = f"{self.page.project.relative(module.path)}:{found.node.lineno}"
        raise PageError(
            self.page.top,
            f"{place} imports a module, which one file cannot hold: {how}",
        )

    def _code(self, module: Module, statement: Statement, later: list[Import]) -> str:
        """Return the text of a statement without imports of the package in it."""
        replace: dict[int, list[str]] = {}
        for found in module.imports(statement.node):
            if found.package == self.package:
                first, last = found.node.lineno, found.node.end_lineno or 0
                pad = " " * found.node.col_offset
                if first not in replace:
                    replace |= {number: [] for number in range(first, last + 1)}
                    replace[first] = [f"{pad}pass"]
                if not statement.for_types:
                    later.append(found)
                    if found.here != found.name:
                        replace[first].append(f"{pad}{found.here} = {found.name}")
        return module.text(statement, replace)

    def _claim(self, names: Iterable[str], where: str, what: str) -> None:
        """Note who defines a name; two modules may not, unless they agree."""
        for name in names:
            before = self.bound.setdefault(name, (where, what))
            if before[0] != where and before[1] != what:
                problem = f"{before[0]} and {where} both define `{name}`"
                advice = "in one file the later replaces the earlier: rename one"
                raise PageError(self.page.top, f"{problem}; {advice}")


def _section(module: Module, file: str, texts: list[str], aliases: list[str]) -> str:
    """Write a module as a part of the file, under its name and what it says."""
    title = [f"# ---- {file} ".ljust(88, "-")]
    title += [f"# {line}".rstrip() for line in module.docstring.split("\n") if line]
    body = "\n".join([*aliases, *texts])
    return "\n".join(title) + "\n\n\n" + re.sub(r"\n{4,}", "\n\n\n", body).strip("\n")
