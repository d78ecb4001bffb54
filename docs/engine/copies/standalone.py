"""One file with the code of a chapter, which needs nothing of the package.

What a copy offers is named in the front matter: `copy: [package/file.py, …]`, modules
or `package/file.py:name`; without it, what the page embeds; `copy: []` says that there
is nothing to take away. What that needs comes along, statement by statement. Of a
module that the chapter is not about, docstrings are cut to their first sentence: the
rest stands in the chapter that teaches it. `demo:` is Python for the end of the file,
which shows the code at work.
"""

import ast
import itertools
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.copies.copying import TWIN, Copy, Entry
from engine.copies.modules import Module, Statement
from engine.definitions import NoDefinition, find_nodes
from engine.pages.blocks import PageError
from engine.pages.reading import Page

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Standalone:
    """A finished file, and the modules it was made from."""

    name: str
    text: str
    sources: list[Path]


def standalone_files(page: Page) -> list[Standalone]:
    """Return the files of a page: one, or two where it offers the NumPy twin.

    A page with `copy: []` has none.

    Raises:
        PageError: an import or a name that one file cannot hold.
    """
    if page.meta.get("copy") == []:
        return []
    twin = page.project.root / page.project.package / TWIN
    offered, embedded = _named(page), _embedded(page)
    files = []
    for suffix, of_twin in (("", False), ("_numpy", True)):
        for statements in (offered, embedded):
            part = {
                path: chosen
                for path, chosen in statements.items()
                if path.is_relative_to(twin) is of_twin
            }
            if part:
                copy = Copy(page)
                copy.offer(part)
                name = f"{page.name}{suffix}.py"
                demo = _demo(page, f"demo{suffix}")
                files.append(
                    Standalone(name, _layout(page, copy, demo), list(copy.chosen))
                )
                break
    return files


def _named(page: Page) -> dict[Path, set[int] | None]:
    """Return the modules that `copy:` names, and the lines of definitions in them."""
    named: dict[Path, set[int] | None] = {}
    for entry in page.meta.get("copy") or []:
        file, _, name = str(entry).partition(":")
        path = page.project.root / file
        where = page.meta_line("copy")
        if not path.is_file():
            raise PageError(where, f"`copy:` names {file}, which is not there")
        if not name:
            named[path] = None
            continue
        try:
            node = find_nodes(path.read_text("utf-8"), name)[0]
        except NoDefinition as error:
            raise PageError(where, f"`copy:` names {entry}: {error}") from None
        lines = named.setdefault(path, set())
        if lines is not None:
            lines.add(node.lineno)
    return named


def _embedded(page: Page) -> dict[Path, set[int] | None]:
    """Return the lines of the package that the blocks of a page hold, by file."""
    package = page.project.root / page.project.package
    shown: dict[Path, set[int] | None] = {}
    for block in page.blocks:
        if block.mark is None or block.mark.condition is not None:
            for line in block.lines:
                file = line.origin.file
                if file.suffix == ".py" and file.is_relative_to(package):
                    lines = shown.setdefault(file, set())
                    assert lines is not None
                    lines.add(line.origin.line)
    return shown


def _demo(page: Page, key: str) -> str:
    """Return the demonstration that a copy ends with, as Python."""
    demo = textwrap.dedent(str(page.meta.get(key) or "")).strip("\n")
    try:
        compile(demo, key, "exec")
    except SyntaxError as error:
        problem = f"`{key}:` is no Python, in its line {error.lineno}: {error.msg}"
        raise PageError(page.meta_line(key), problem) from None
    return demo


def _layout(page: Page, copy: Copy, demo: str) -> str:
    """Write the head of the file, its imports, its sections, and what it shows."""
    head = [
        f"# {page.title}: the code of the chapter in one file.",
        f"# {page.project.page_url(page.path)} · MIT licence",
        "",
    ]
    demo, entries = _without_imports(demo)
    entries |= copy.entries
    names = _Names(page)
    for entry in entries:
        names.claim(entry[2], "an import", _canonical(*entry))
    used = _attributes(copy, demo)
    sections = [_section(copy, path, names, used) for path in copy.order()]
    sections = [each for each in sections if each]
    if demo:
        body = textwrap.indent(demo, "    ")
        sections.append(f'if __name__ == "__main__":\n{body}')
    if copy.future:
        head += [f"from __future__ import {', '.join(sorted(copy.future))}", ""]
    head += _import_lines(entries)
    return _compact("\n".join(head) + "\n\n" + "\n\n\n".join(sections) + "\n")


def _compact(source: str) -> str:
    """Put as many parameters of a function on a line as fit, and lay out the rest."""
    how = ["--line-length=88", "--config=format.skip-magic-trailing-comma=true"]
    command = [sys.executable, "-m", "ruff", "format", "--isolated", *how, "-"]
    source = subprocess.run(
        command, input=source, capture_output=True, text=True, check=True
    ).stdout
    lines = source.split("\n")
    functions = (x for x in ast.walk(ast.parse(source)) if isinstance(x, _FUNCTION))
    for node in sorted(functions, key=lambda node: -node.lineno):
        first, last = node.lineno, node.body[0].lineno - 1
        signature = lines[first:last]  # below the line of `def`
        end = next((i for i, x in enumerate(signature) if x.strip()[:1] == ")"), 0)
        if end > 1:
            pad = " " * (node.col_offset + 4)
            filled = " ".join(line.strip() for line in signature[:end])
            lines[first : first + end] = textwrap.wrap(
                filled, 88, initial_indent=pad, subsequent_indent=pad
            )
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def _without_methods(
    edits: Iterable[tuple[ast.AST, str]], lines: dict[int, str]
) -> list[tuple[ast.AST, str]]:
    """Delete the lines of methods that are left out; return the other edits."""
    methods = [node for node, text in edits if not text and isinstance(node, _FUNCTION)]
    inside = {inner for method in methods for inner in ast.walk(method)}
    for method in methods:
        first = min([method.lineno, *(x.lineno for x in method.decorator_list)])
        for number in range(first, (method.end_lineno or 0) + 1):
            lines.pop(number, None)
    return [(node, text) for node, text in edits if node not in inside]


def _attributes(copy: Copy, demo: str) -> set[str]:
    """Return every attribute that the copy names: a method may be one of them.

    A method that is named in a method of its own name only is used by nothing else.
    """
    statements = (
        copy.module(path).statements[number].node
        for path, numbers in copy.chosen.items()
        for number in numbers
    )
    return set().union(*map(_named_in, [*statements, ast.parse(demo)]))


def _named_in(tree: ast.AST) -> set[str]:
    here = {tree.attr} if isinstance(tree, ast.Attribute) else set()
    below = here.union(*map(_named_in, ast.iter_child_nodes(tree)))
    return below - {tree.name} if isinstance(tree, _FUNCTION) else below


def _section(copy: Copy, path: Path, names: "_Names", used: set[str]) -> str:
    """Write a module as a part of the file, under its name and what it says."""
    module = copy.module(path)
    text, last = "", -1
    for number in sorted(copy.chosen[path]):
        statement = module.statements[number]
        what = ast.dump(statement.node)
        if names.hold(statement.defines, what):
            continue  # another module says the same
        for name in statement.defines:
            names.claim(name, module.name, what)
        text += "\n" * (1 + _gap(module, statement, number == last + 1))
        edits = copy.edits.get((path, number), [])
        if not (copy.teaches(path) and copy.offers(path, statement)):
            edits = [*edits, *_shortened(statement.node, used)]
        text += _edited(module, statement, edits)
        last = number
    if not text:
        return ""
    file = copy.project.relative(path)
    if not copy.teaches(path):
        return f"# From {file}\n" + text.strip("\n")
    title = [f"# ---- {file} ".ljust(88, "-")]
    title += [f"# {line}" for line in module.docstring.split("\n") if line]
    return "\n".join(title) + "\n\n" + text.strip("\n")


class _Names:
    """Who defines a name; two may not, unless they agree."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.known: dict[str, tuple[str, str]] = {}

    def hold(self, names: Iterable[str], what: str) -> bool:
        """Whether all these names are there, and stand for this."""
        said = [self.known.get(name, ("", ""))[1] for name in names]
        return bool(said) and set(said) == {what}

    def claim(self, name: str, where: str, what: str) -> None:
        """Note who defines a name.

        Raises:
            PageError: another defines it as well, and otherwise.
        """
        before = self.known.setdefault(name, (where, what))
        if before[1] != what and (before[0] != where or where == "an import"):
            problem = f"{before[0]} and {where} both define `{name}`"
            advice = "in one file the later replaces the earlier: rename one"
            raise PageError(self.page.top, f"{problem}; {advice}")


def _gap(module: Module, statement: Statement, follows: bool) -> int:
    """Return how many empty lines stand above a statement."""
    if not follows:
        return 2
    above = itertools.takewhile(
        lambda line: not line.strip(), reversed(module.lines[: statement.first - 1])
    )
    return min(2, len(list(above)))


def _edited(
    module: Module, statement: Statement, edits: Iterable[tuple[ast.AST, str]]
) -> str:
    """Return the text of a statement, with other text in some places."""
    lines = {n: module.lines[n - 1] for n in range(statement.first, statement.last + 1)}
    edits = list(edits)
    for node, text in edits:
        if isinstance(node, ast.Constant):  # a docstring
            for number in range(node.lineno, (node.end_lineno or 0) + 1):
                del lines[number]
            lines[node.lineno] = " " * node.col_offset + text
    edits = _without_methods(edits, lines)
    gone = [node for node, text in edits if not text and isinstance(node, ast.Name)]
    for node in gone:  # a decorator
        del lines[node.lineno]
    edits = [edit for edit in edits if edit[0] not in gone]
    names = [(node, text) for node, text in edits if isinstance(node, ast.Name)]
    for node, text in sorted(names, key=lambda x: (x[0].lineno, -x[0].col_offset)):
        line = lines[node.lineno].encode()
        end = node.end_col_offset
        line = line[: node.col_offset] + text.encode() + line[end:]
        lines[node.lineno] = line.decode()
    for imports, texts in _by_node(edits):
        pad = " " * imports.col_offset
        new = [f"{pad}{text}" for text in texts if text]
        if not new and _stands_alone(statement.node, imports):
            new = [f"{pad}pass"]
        for number in range(imports.lineno, (imports.end_lineno or 0) + 1):
            del lines[number]
        if new:
            lines[imports.lineno] = "\n".join(new)
    return "\n".join(lines[number] for number in sorted(lines))


def _shortened(tree: ast.AST, used: set[str]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the methods that nothing uses, and docstrings with their first line."""
    gone = set()
    if isinstance(tree, ast.ClassDef):
        for method in tree.body:
            name = getattr(method, "name", "forward")
            if not (name in used or name == "forward" or name.startswith("__")):
                gone |= set(ast.walk(method))
                yield method, ""
    for node in (x for x in ast.walk(tree) if x not in gone):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            about = ast.get_docstring(node)
            if about and "\n" in about:
                first = about.partition("\n")[0]
                yield node.body[0].value, f'"""{first}"""'  # type: ignore[attr-defined]


def _by_node(
    edits: Iterable[tuple[ast.AST, str]],
) -> Iterator[tuple[ast.stmt, list[str]]]:
    imports = [(node, text) for node, text in edits if isinstance(node, ast.stmt)]
    for _, group in itertools.groupby(imports, lambda edit: id(edit[0])):
        pairs = list(group)
        yield pairs[0][0], [text for _, text in pairs]


def _stands_alone(tree: ast.AST, node: ast.stmt) -> bool:
    """Whether nothing but a docstring stands beside a statement."""
    bodies = (
        getattr(parent, name, None)
        for parent in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
    )
    return any(isinstance(body, list) and body == [node] for body in bodies)


def _without_imports(demo: str) -> tuple[str, set[Entry]]:
    """Take the imports out of a demonstration: they go to the top of the file."""
    lines, entries = demo.split("\n"), set[Entry]()
    for node in reversed(ast.parse(demo).body):
        if isinstance(node, ast.Import):
            for a in node.names:
                here = a.asname or a.name.partition(".")[0]
                entries.add((a.name, "", here))
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            entries |= {(source, a.name, a.asname or a.name) for a in node.names}
        else:
            continue
        del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip("\n"), entries


def _canonical(source: str, name: str, here: str) -> str:
    """Name what an import gives: `import a.b as c` and `from a import b as c` agree."""
    if name:
        return f"{source}.{name}"
    return here if here == source.partition(".")[0] else source


def _import_lines(entries: set[Entry]) -> list[str]:
    """Write imports as ruff orders them, an empty line below each group."""
    once = {(_canonical(*entry), entry[2], "." in entry[0]): entry for entry in entries}
    lines = []
    for third_party in (False, True):
        group = sorted(
            entry
            for entry in set(once.values())
            if (entry[0].partition(".")[0] not in sys.stdlib_module_names)
            is third_party
        )
        part = [_import_line(source, here) for source, name, here in group if not name]
        named = (found for found in group if found[1])
        for source, names in itertools.groupby(named, lambda found: found[0]):
            part += _from_lines(source, [_renamed(*each[1:]) for each in names])
        lines += [*part, ""] if part else []
    return lines


def _renamed(name: str, here: str) -> str:
    return name if name == here else f"{name} as {here}"


def _import_line(source: str, here: str) -> str:
    plain = here == source.partition(".")[0]
    return f"import {source}" if plain else f"import {source} as {here}"


def _from_lines(source: str, names: list[str]) -> list[str]:
    line = f"from {source} import {', '.join(names)}"
    if len(line) <= 88:
        return [line]
    return [f"from {source} import (", *(f"    {name}," for name in names), ")"]
