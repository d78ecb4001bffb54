"""Write a chapter as a Jupyter notebook that holds its outputs and runs alone."""

import ast
import base64
import io
import itertools
import lzma
import posixpath
import re
import textwrap
import zipfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from engine.pages.blocks import Block, indent_of
from engine.pages.reading import Page
from engine.project import Project
from engine.run.figures import Placed
from engine.run.running import Result

Cell = dict[str, Any]
v4: Any = nbformat.v4  # which has no types

_ANNOTATION = re.compile(r"#(\s*\(\d+\))!")
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


@dataclass
class Ran:
    """A page with all that its blocks left behind."""

    page: Page
    results: list[Result]
    placed: list[Placed] = field(default_factory=list)
    modules: list[Path] = field(default_factory=list)  # of the package, imported


def notebook(ran: Ran) -> str:
    """Return the notebook of a page as JSON."""
    page = ran.page
    where = page.project.page_url(page.path)
    about = f"*A copy of <{where}>, with its outputs. Every cell runs here as well.*"
    cells = [v4.new_markdown_cell(about)]
    if ran.modules:
        blocks = [block.fence.code for block in page.blocks]
        files = [*ran.modules, *needed_data(page.project, blocks, ran.modules)]
        cells.append(loading_cell(page.project, files))
    cells += _cells(ran)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        cell["execution_count"] = count
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    book = v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(book)
    text: str = v4.writes(book, ensure_ascii=False)
    return text + "\n"


def _cells(ran: Ran) -> list[Cell]:
    """Cut the page at the blocks that were run: text between them, and code."""
    page, parts = ran.page, texts_of(ran.page)
    for placed in ran.placed:  # figures are outputs there
        parts.pop(placed.place.index, None)
    run = {b.fence.start: b for b in page.blocks if b.left_out is None}
    for fence in page.fences:
        if fence.start not in run and not fence.is_output:
            ticks = fence.ticks
            parts[fence.start] = f"{ticks}{fence.language}\n{fence.code}\n{ticks}"
    return [
        # What was below a list item would turn into code.
        v4.new_markdown_cell(textwrap.dedent(each) if each.startswith("    ") else each)
        if isinstance(each, str)
        else _block_cell(run[each], ran)
        for each in cut(parts, run)
    ]


def texts_of(page: Page) -> dict[int, str]:
    """Return the prose of a page as a notebook has it, by the index of each line."""
    lines = ((index, notebook_markdown(page, x)) for index, x in flat_lines(page))
    return {index: text for index, text in lines if text is not None}


def cut(texts: dict[int, str], code: Collection[int]) -> Iterator[str | int]:
    """Yield the text above each line of code, the index of that line, and the rest."""
    indices = sorted({*texts, *code})
    for is_code, group in itertools.groupby(indices, lambda index: index in code):
        if is_code:
            yield from group
            continue
        lines = "\n".join(texts[index] for index in group)
        text = re.sub(r"\n{3,}", "\n\n", lines).strip("\n")
        if text.strip("> \n"):
            yield text


def _block_cell(block: Block, ran: Ran) -> Cell:
    result = ran.results[block.number]
    code = _ANNOTATION.sub(r"#\1", block.fence.code)
    outputs = [v4.new_output("stream", text=result.stdout)] if result.stdout else []
    for placed in ran.placed:
        if placed.block == block.number:
            data = {"image/svg+xml": placed.svg, "text/plain": placed.place.alt}
            outputs.append(v4.new_output("display_data", data=data))
    code = _silent(code) if result.has_value else code
    return v4.new_code_cell(code, outputs=outputs)


def _silent(code: str) -> str:
    """End the last expression with `;`, so that Jupyter does not show its value."""
    last = ast.parse(code).body[-1]
    lines = code.split("\n")
    assert last.end_lineno is not None
    line = lines[last.end_lineno - 1].encode()
    end = last.end_col_offset
    assert end is not None
    lines[last.end_lineno - 1] = (line[:end] + b";" + line[end:]).decode()
    return "\n".join(lines)


_BOX = re.compile(r'(?:!!!|\?\?\?\+?)\s+(?P<kind>[\w-]+)[^"]*(?:"(?P<title>.*)")?\s*$')
_TAB = re.compile(r'===[+!]*\s+"(?P<title>.*)"\s*$')
_STEP = 4


def flat_lines(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of fences with their index, tabs and boxes opened up.

    The title of a tab or a box becomes a bold line; what was in it is moved left.
    """
    depth = 0
    for index, line in page.prose:
        while line.strip() and depth and indent_of(line) < depth:
            depth -= _STEP
        text = line[depth:] if line.strip() else ""
        title = _title(text.strip())
        if title is not None and indent_of(text) % _STEP == 0:
            depth += indent_of(text) + _STEP
            text = f"**{title}**" if title else ""
        yield index, text


def _title(text: str) -> str | None:
    """Return the title of a tab or box that begins here."""
    found = _TAB.match(text) or _BOX.match(text)
    if found is None:
        return None
    return found["kind"].title() if found["title"] is None else found["title"]


_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_MATH = re.compile(r"\\\((.+?)\\\)")
_DISPLAY = re.compile(r"\\[\[\]]")  # either end of it
_LINK = re.compile(r"(\]\(|^\s*\[[^\]^]+\]:\s+)(<?)([^)\s>]+)")
_COMMENT = re.compile(r"<!--.*?-->")
# An abbreviation, and what is around a picture that is live on the site.
_NOWHERE = re.compile(r"\*\[.+?\]:|\s*</?figure\b")
_FOOTNOTE = re.compile(r"\[\^([\w-]+)\](:?)")
_ICON = re.compile(r":(?:material|fontawesome|octicons|simple)-[\w-]+:\s?")
# `{ #id .class key="value" }` after a heading, a link, a span or a blank; TeX has
# braces too, but not such text in them.
_VALUE = r'[\w-]+=(?:"[^"]*"|[\w-]+)'
_ATTRIBUTES = re.compile(
    rf"(?:^|(?<=[\s)\]`*]))\{{:?\s*(?:[#.][A-Za-z][\w-]*|{_VALUE})(?:\s+(?:[#.][\w-]+|{_VALUE}))*\s*\}}"
)


def notebook_markdown(page: Page, line: str) -> str | None:
    """Return a line of the page for a notebook, or None if it has no place there."""
    if _NOWHERE.match(line):
        return None
    written, end = "", 0
    for span in _CODE_SPAN.finditer(line):
        # Without the language that it names for highlighting.
        code = re.sub(r"^(`+)(?:#!|:::)\w+ ", r"\1", span[0])
        written += _prose(page, line[end : span.start()]) + code
        end = span.end()
    return (written + _prose(page, line[end:])).rstrip()


def link_from(project: Project, file: Path, target: str) -> str:
    """Return a link in a file of docs/ as it works anywhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return target
    path, hash_, anchor = target.partition("#")
    if not path:
        return project.page_url(file) + hash_ + anchor
    there = posixpath.normpath(posixpath.join(file.parent.as_posix(), path))
    return project.page_url(Path(there)) + hash_ + anchor


def _prose(page: Page, text: str) -> str:
    for dropped in (_COMMENT, _ATTRIBUTES, _ICON):
        text = dropped.sub("", text)
    text = _MATH.sub(lambda math: f"${math[1].strip()}$", text)
    text = _FOOTNOTE.sub(r"<sup>\1</sup>", _DISPLAY.sub("$$", text))
    return _LINK.sub(
        lambda link: link[1] + link[2] + link_from(page.project, page.path, link[3]),
        text,
    )


_LOADING = """\
#@title Get {package}: the one that is installed, or else the copy that this cell holds
try:
    import {package}
except ImportError:
    import base64, io, lzma, sys, tempfile, zipfile
    folder = tempfile.mkdtemp()
    sys.path.insert(0, folder)
    # {count} files of {url}, compressed: look for them in the folder
    copy = "{copy}"
    copy = io.BytesIO(lzma.decompress(base64.b64decode(copy)))
    zipfile.ZipFile(copy).extractall(folder)"""


def loading_cell(project: Project, files: list[Path]) -> Cell:
    """Return the first cell: closed, so that a reader sees its title."""
    closed = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return v4.new_code_cell(loading_code(project, files), metadata=closed)


def loading_code(project: Project, files: list[Path]) -> str:
    """Return code that makes the package importable, from a copy of `files`."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as copy:
        for path in sorted(files):
            # No date: the same files give the same notebook.
            entry = zipfile.ZipInfo(project.relative(path))
            copy.writestr(entry, path.read_bytes())
    # All files together are half of what they are one by one.
    text = base64.b64encode(lzma.compress(archive.getvalue(), preset=9)).decode()
    return _LOADING.format(
        package=project.package, url=project.repo_url, count=len(files), copy=text
    )


def needed_data(
    project: Project, code: Iterable[str], modules: Iterable[Path]
) -> list[Path]:
    """Return the data files of the package that a page may read.

    That is every file beside a module that the page imports, and every file whose own
    name, or the name of whose folder, stands in the code of the page or of these
    modules; the package itself names all its folders, and does not count. Of weights,
    which are most of the bytes, only those of a folder that the page's own code names.
    """
    package = project.root / project.package
    inner = [path for path in modules if path != package / "__init__.py"]
    own = "\n".join(code)
    text = "\n".join([own, *(path.read_text("utf-8") for path in inner)])
    beside = {path.parent for path in inner} - {package}
    return [
        path
        for path in project.package_files()
        if path.suffix != ".py"
        and (
            f'"{path.parent.name}"' in own
            if path.suffix == ".safetensors"
            else path.parent in beside
            or path.name in text
            or (path.parent != package and f'"{path.parent.name}"' in text)
        )
    ]
