"""Write a chapter as a Jupyter notebook that holds its outputs and runs alone."""

import ast
import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from engine.blocks import Block
from engine.bundle import loading_cell, needed_data
from engine.flatten import flat_lines
from engine.markup import notebook_markdown
from engine.page import Page
from engine.places import Placed
from engine.running import Result

Cell = dict[str, Any]

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
    cells = [_text_cell(about)]
    if ran.modules:
        sources = [path.read_text("utf-8") for path in ran.modules]
        sources += [block.fence.code for block in page.blocks]
        files = [*ran.modules, *needed_data(page.project, sources)]
        cells.append(_code_cell(loading_cell(page.project, files), []))
    cells += _cells(ran)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        cell["execution_count"] = count
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    book = {
        "cells": cells,
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    nbformat.validate(book)
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _cells(ran: Ran) -> list[Cell]:
    """Cut the page at the blocks that were run: text between them, and code."""
    page = ran.page
    run = {b.fence.start: b for b in page.blocks if b.left_out() is None}
    parts = _texts(ran)
    for fence in page.fences:
        if fence.start not in run and not fence.is_output:
            ticks = fence.ticks
            parts[fence.start] = f"{ticks}{fence.language}\n{fence.code}\n{ticks}"
    cells: list[Cell] = []
    waiting: list[str] = []
    for index in sorted(parts.keys() | run.keys()):
        if index in run:
            cells += _prose_cells(waiting)
            cells.append(_block_cell(run[index], ran))
            waiting = []
        else:
            waiting.append(parts[index])
    return cells + _prose_cells(waiting)


def _texts(ran: Ran) -> dict[int, str]:
    """Return the prose for a notebook, by index; figures are outputs there."""
    figures = {placed.place.index for placed in ran.placed}
    texts = {}
    for index, line in flat_lines(ran.page):
        text = notebook_markdown(ran.page, line)
        if text is not None and index not in figures:
            texts[index] = text
    return texts


def _prose_cells(lines: list[str]) -> list[Cell]:
    """Return a cell for the lines, or none where they say nothing."""
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if not text.strip("> \n"):
        return []
    if text.startswith("    "):  # what was below a list item would turn into code
        text = textwrap.dedent(text)
    return [_text_cell(text)]


def _block_cell(block: Block, ran: Ran) -> Cell:
    result = ran.results[block.number]
    code = _ANNOTATION.sub(r"#\1", block.fence.code)
    outputs: list[dict[str, Any]] = []
    if result.stdout:
        text = _lines(result.stdout)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    for placed in ran.placed:
        if placed.block == block.number:
            data = {
                "image/svg+xml": _lines(placed.svg),
                "text/plain": [placed.place.alt],
            }
            show = {"output_type": "display_data", "metadata": {}, "data": data}
            outputs.append(show)
    return _code_cell(_silent(code) if result.has_value else code, outputs)


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


def _text_cell(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _code_cell(code: str, outputs: list[dict[str, Any]]) -> Cell:
    source = _lines(code)
    return {
        "cell_type": "code",
        "metadata": {},
        "source": source,
        "outputs": outputs,
        "execution_count": None,
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
