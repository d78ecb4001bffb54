"""Write a chapter as a Jupyter notebook that holds its outputs and runs alone."""

import ast
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import nbformat

from engine.copies.as_markdown import cut, texts_of
from engine.copies.exercises import SOLUTIONS, InNotebook
from engine.pages.blocks import Block
from engine.pages.reading import Page
from engine.release import unpinned
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
    if ran.modules:
        cells.append(installing_cell(unpinned(page.project)))
    cells += _cells(ran, exercises)
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


def installing_cell(requirement: str) -> Cell:
    """Return the first code cell, one line, which installs the package."""
    return v4.new_code_cell(f'%pip install --quiet "{requirement}"')
