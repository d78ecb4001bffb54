"""The page of speed: written from the files of `make bench`, and never typed.

`python -m engine speed` reads every file of docs/speed/ and writes docs/speed.md.

rows          what a file holds, as typed rows, and numbers as people write them
bars          what was asked of speed and memory, and whether it is met
tables        the tables of a file
pictures      its pictures, each drawn by the page from the numbers beside it
page          the order of the page
"""

import json
from pathlib import Path

from engine.speed.page import CHAPTER, render
from engine.speed.rows import Report

__all__ = ["kept_reports", "page", "write"]

PAGE = "speed.md"
FILES = "speed"


def kept_reports(docs: Path) -> dict[str, Report]:
    """Read the files, by their names."""
    files = sorted((docs / FILES).glob("*.json"))
    return {file.stem: Report.of(json.loads(file.read_text("utf-8"))) for file in files}


def page(docs: Path) -> str:
    """Make the page from what is kept."""
    return render(kept_reports(docs), chapter=(docs / CHAPTER).exists())


def write(docs: Path) -> None:
    """Write the page."""
    (docs / PAGE).write_text(page(docs), "utf-8")
