"""The core chapters as a book: an EPUB for readers, a PDF of pages of their size.

`python -m engine book` makes both from the built site. A chapter is taken as the site
shows it: its folds become sections, solutions go to its end, and what moves in a
browser becomes a line with the address.
"""

from pathlib import Path

from engine.book.chapters import Chapter, core
from engine.book.volume import Volume
from engine.project import Project

NAMES = ("tformer.epub", "tformer.pdf")

__all__ = ["NAMES", "Chapter", "Volume", "core", "write"]


def write(project: Project, site: Path, target: Path) -> list[Path]:
    """Make the EPUB and the PDF from a built site; return the two files.

    Raises:
        ValueError: the site lacks a chapter or a picture, or KaTeX's formulas have no
            twin in MathJax.
        OSError: there is no Chromium to print with.
    """
    from engine.book import epub, pdf

    volume = Volume.read(project, site)
    target.mkdir(parents=True, exist_ok=True)
    book, printed = (target / name for name in NAMES)
    epub.write(volume, book)
    pdf.write(volume, printed)
    return [book, printed]
