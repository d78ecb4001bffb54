"""The page of speed: written from the files of `make bench`, and never typed.

`python -m engine speed` reads every file of docs/speed/ and writes docs/speed.md.
"""

from pathlib import Path

from engine.speed import rows
from engine.speed.rows import Report
from engine.tables import read_kept, render

__all__ = ["kept_reports", "page", "write"]

PAGE = "speed.md"
FILES = "speed"
CHAPTER = "chapters/making-it-fast.md"
NEAR = 0.02  # what equal code may differ by in a run


def kept_reports(docs: Path) -> dict[str, Report]:
    """Read the files, by their names."""
    files = sorted((docs / FILES).glob("*.json"))
    return {
        file.stem: Report(read_kept(file), str(file.relative_to(docs.parent)))
        for file in files
    }


def page(docs: Path) -> str:
    """Make the page from what is kept."""
    return render(
        Path(__file__).parent / "page.md.jinja",
        reports=kept_reports(docs),
        chapter=CHAPTER if (docs / CHAPTER).exists() else "",
        near=NEAR,
        rows=rows,
    )


def write(docs: Path) -> None:
    """Write the page; a KeptError names a file, and the field that it lacks."""
    (docs / PAGE).write_text(page(docs), "utf-8")
