"""One file with the code of a chapter: definitions of the package, put in order.

What a copy offers is named in the front matter: `copy: [package/file.py, …]`, modules
or `package/file.py:name`; without it, what the page embeds; `copy: []` says that there
is nothing to take away. What that needs comes along, definition by definition and word
for word. `demo:` is Python for the end of the file, which shows the code at work.
"""

import ast
import itertools
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

from engine.copies.closure import Closure, Import, imports_of, names_in
from engine.definitions import NoDefinition, find_nodes
from engine.pages.blocks import PageError
from engine.pages.reading import Page

TWIN = "reference"  # the subpackage that repeats the names of the others, in NumPy
Lines = dict[Path, set[int] | None]  # of each file some lines, or all


@dataclass(frozen=True)
class Standalone:
    """A finished file, and the modules it was made from."""

    name: str
    text: str
    sources: list[Path]


def standalone_files(page: Page) -> list[Standalone]:
    """Return the files of a page: one, or two where it offers the NumPy twin.

    Raises:
        PageError: an import or a name that one file cannot hold.
    """
    if page.meta.get("copy") == []:
        return []
    twin = page.project.root / page.project.package / TWIN
    named, embedded = _named(page), _embedded(page)
    files = []
    for suffix in ("", "_numpy"):
        for lines in (named, embedded):
            part = {
                path: chosen
                for path, chosen in lines.items()
                if path.is_relative_to(twin) is bool(suffix)
            }
            if part:
                closure = Closure(page, part)
                text = _layout(closure, _demo(page, f"demo{suffix}"))
                sources = list(closure.chosen)
                files.append(Standalone(f"{page.name}{suffix}.py", text, sources))
                break
    return files


def _named(page: Page) -> Lines:
    """Return the modules that `copy:` names, and the lines of definitions in them."""
    named: Lines = {}
    where = page.meta_line("copy")
    for entry in page.meta.get("copy") or []:
        file, _, name = str(entry).partition(":")
        path = page.project.root / file
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


def _embedded(page: Page) -> Lines:
    """Return the lines of the package that the blocks of a page hold."""
    package = page.project.root / page.project.package
    places = {
        line.origin
        for block in page.blocks
        if block.left_out is None
        for line in block.lines
        if line.origin.file.suffix == ".py"
        if line.origin.file.is_relative_to(package)
    }
    files = dict.fromkeys(place.file for place in sorted(places))
    return {file: {x.line for x in places if x.file == file} for file in files}


def _demo(page: Page, key: str) -> str:
    """Return the demonstration that a copy ends with, as Python."""
    demo = textwrap.dedent(str(page.meta.get(key) or "")).strip("\n")
    try:
        ast.parse(demo)
    except SyntaxError as error:
        problem = f"`{key}:` is no Python, in its line {error.lineno}: {error.msg}"
        raise PageError(page.meta_line(key), problem) from None
    return demo


def _layout(closure: Closure, demo: str) -> str:
    """Write the head of the file, its imports, its modules, and what it shows."""
    page = closure.page
    lines = demo.split("\n")
    for node in reversed(ast.parse(demo).body):  # its imports go to the top as well
        for found in imports_of(node):
            closure.add_import(found, "the demonstration")
        if isinstance(node, ast.Import | ast.ImportFrom):
            del lines[node.lineno - 1 : node.end_lineno]
    demo = "\n".join(lines).strip("\n")
    for name in names_in(demo)[1]:
        closure.claim(name, f"a name of the demonstration, {name}")
    head = [
        # A comma: after "coding:" Python would look for the encoding of the file.
        f"# {page.title}, the code of the chapter in one file.",
        f"# {page.url} · MIT licence",
    ]
    parts = ["\n".join([*head, "", *_import_lines(closure.imports)])]
    for path in closure.order():
        title = f"# ---- {page.project.relative(path)} ".ljust(88, "-")
        first, *others = closure.texts(path)
        if path in closure.offered:
            about = closure.module(path).docstring.split("\n")
            title += "".join(f"\n# {line}".rstrip() for line in about) + "\n\n"
        parts += [f"{title}\n{first}", *others]
    if demo:
        main = 'if __name__ == "__main__":\n' + textwrap.indent(demo, "    ")
        parts.append(main)
    return "\n\n\n".join(parts) + "\n"


def _import_lines(imports: set[Import]) -> list[str]:
    """Write imports in three groups: of the future, of Python, and of others."""
    lines: list[str] = []
    ordered = sorted(imports, key=lambda x: (_group(x), x.name != "", x))
    for _, part in itertools.groupby(ordered, _group):
        lines += [""] if lines else []
        for source, several in itertools.groupby(part, lambda x: x.name and x.source):
            names = [each.renamed for each in several]
            if not source:
                lines += [f"import {name}" for name in names]
                continue
            line = f"from {source} import {', '.join(names)}"
            if len(line) > 88:
                inside = "".join(f"    {name},\n" for name in names)
                line = f"from {source} import (\n{inside})"
            lines.append(line)
    return lines


def _group(found: Import) -> int:
    if found.source == "__future__":
        return 0
    return 1 if found.package in sys.stdlib_module_names else 2
