"""Write a chapter as a Jupyter notebook that holds its outputs and runs alone."""

import ast
import base64
import io
import lzma
import textwrap
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nbformat

from engine.copies.as_markdown import cut, texts_of
from engine.copies.exercises import SOLUTIONS, InNotebook
from engine.pages.blocks import Block
from engine.pages.reading import Page
from engine.project import Project
from engine.run.figures import Placed
from engine.run.running import Result

if TYPE_CHECKING:
    from tformer.check.asked import Exercise

Cell = dict[str, Any]
v4: Any = nbformat.v4  # which has no types

_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


class Ran(NamedTuple):
    """A page with all that its blocks left behind."""

    page: Page
    results: list[Result]
    placed: list[Placed]
    modules: list[Path]  # of the package, imported
    asked: "dict[int, Exercise]"  # the exercises whose answers are known


def notebooks(ran: Ran) -> dict[str, str]:
    """Return the notebooks of a page as JSON, by their names.

    Where its exercises have answers, solutions stand in a notebook of their own.
    """
    name = ran.page.name
    to_do = InNotebook(ran, solved=False)
    found = {name: notebook(ran, to_do)}
    if to_do.link:
        found[f"{name}{SOLUTIONS}"] = notebook(ran, InNotebook(ran, solved=True))
    return found


def notebook(ran: Ran, exercises: InNotebook) -> str:
    """Return a notebook of a page as JSON."""
    page = ran.page
    about = f"*A copy of <{page.url}>, with its outputs. Every cell runs here as well.*"
    cells = [v4.new_markdown_cell(f"{about}{exercises.link}")]
    rest = _cells(ran, exercises)
    if ran.modules:
        blocks = [x["source"] for x in rest if x["cell_type"] == "code"]
        files = [*ran.modules, *needed_data(page.project, blocks, ran.modules)]
        cells.append(loading_cell(page.project, files))
    cells += rest
    code = (cell for cell in cells if cell["cell_type"] == "code")
    for count, cell in enumerate(code, 1):
        cell["execution_count"] = count
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    book = v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.validate(book)
    text: str = v4.writes(book, ensure_ascii=False)
    return text + "\n"


def _cells(ran: Ran, exercises: InNotebook) -> list[Cell]:
    """Cut the page at the blocks that were run: text between them, and code."""
    page, parts = ran.page, texts_of(ran.page)
    for placed in ran.placed:  # figures are outputs there
        parts.pop(placed.place.index, None)
    run = {b.fence.start: b for b in page.blocks if b.left_out is None}
    for fence in page.fences:
        if fence.start not in run and not fence.is_output:
            ticks = fence.ticks
            parts[fence.start] = f"{ticks}{fence.language}\n{fence.code}\n{ticks}"
    for index in exercises.left_out:
        parts.pop(index, None)
        run.pop(index, None)
    asked = exercises.cells
    parts = {index: text for index, text in parts.items() if index not in asked}
    return [
        v4.new_markdown_cell(_flush(each))
        if isinstance(each, str)
        else asked[each]
        if each in asked
        else _block_cell(run[each], ran)
        for each in cut(parts, {*run, *asked})
    ]


def _flush(text: str) -> str:
    """Move text to the left that was below a list item: it would turn into code."""
    return textwrap.dedent(text) if text.startswith("    ") else text


def _block_cell(block: Block, ran: Ran) -> Cell:
    result = ran.results[block.number]
    code = block.fence.code
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
    lines = code.encode().split(b"\n")
    number, end = (last.end_lineno or 0) - 1, last.end_col_offset or 0
    lines[number] = lines[number][:end] + b";" + lines[number][end:]
    return b"\n".join(lines).decode()


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
    copy = io.BytesIO(lzma.decompress(base64.b85decode(copy)))
    zipfile.ZipFile(copy).extractall(folder)"""


def loading_cell(project: Project, files: list[Path]) -> Cell:
    """Return the first cell, which makes the package importable from these files.

    It is closed, so that a reader sees its title.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as copy:
        for path in sorted(files):
            # No date: the same files give the same notebook.
            entry = zipfile.ZipInfo(project.relative(path))
            copy.writestr(entry, path.read_bytes())
    # All files together are half of what they are one by one.
    text = base64.b85encode(lzma.compress(archive.getvalue(), preset=9)).decode()
    code = _LOADING.format(
        package=project.package, url=project.repo_url, count=len(files), copy=text
    )
    closed = {"cellView": "form", "jupyter": {"source_hidden": True}}
    return v4.new_code_cell(code, metadata=closed)


def needed_data(
    project: Project, code: Iterable[str], modules: Iterable[Path]
) -> list[Path]:
    """Return the data files of the package that a page may read.

    They lie beside a module that it imports, or their own name or their folder's stands
    in the code of the page or of these modules; the package itself names all its
    folders, and does not count. Weights, which are most of the bytes, lie in a folder
    that the page's own code names.
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
            else f'"{path.stem}"' in text
            if path.parent.name == "answers"
            else path.parent in beside
            or path.name in text
            or (path.parent != package and f'"{path.parent.name}"' in text)
        )
    ]
