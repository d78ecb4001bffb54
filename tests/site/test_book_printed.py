"""The PDF of the core chapters: outline, contents, links, the size of a page."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from pypdf import PdfReader
from pypdf.generic import Destination

from address import ROOT
from engine.book import pdf, write
from engine.book.volume import Volume
from engine.project import Project

PROJECT = Project(ROOT)
PAGE = (120, 160)  # mm: three quarters of it are six inches
P, R = ParamSpec("P"), TypeVar("R")


def apart(write: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
    """Call it in a thread of its own: a test before may have left a browser in this."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(write, *args, **options).result()


def hold(file: Path, volume: Volume) -> None:
    """Hold a PDF to the book: outline, contents with pages, the size of a page."""
    reader = PdfReader(file)
    tops = [x for x in reader.outline if isinstance(x, Destination)]
    titles = [str(x.title) for x in tops]
    assert titles == ["Contents", *(x.title for x in volume.chapters)]
    places = [reader.get_destination_page_number(x) for x in tops]
    contents = reader.pages[places[0] or 0].extract_text()
    for chapter, place in zip(volume.chapters, places[1:], strict=True):
        assert place is not None
        number, *lines = reader.pages[place].extract_text().split("\n")
        assert number == str(place + 1)
        assert " ".join(lines[:2]).startswith(chapter.title)
        row = next(x for x in contents.split("\n") if x.startswith(chapter.title))
        assert row.split()[-1] == str(place + 1), row
    width, height = (float(x) / 72 * 25.4 for x in reader.pages[0].mediabox[2:])
    assert (round(width), round(height)) == PAGE
    assert reader.metadata is not None
    assert reader.metadata.title == volume.title
    names = {*reader.named_destinations}
    links = [
        note.get_object()
        for page in reader.pages
        for note in page.get("/Annots") or ()
        if note.get_object().get("/Subtype") == "/Link"
    ]
    assert len(links) > len(volume.chapters)
    for link in links:
        if "/Dest" in link and isinstance(link["/Dest"], str):
            assert link["/Dest"] in names


@pytest.mark.nightly
def test_the_whole_book_is_printed(site: Path, tmp_path: Path) -> None:
    _, printed = apart(write, PROJECT, site, tmp_path)
    hold(printed, Volume.read(PROJECT, site))


@pytest.mark.nightly
def test_a_chapter_is_printed(site: Path, tmp_path: Path) -> None:
    volume = Volume.read(PROJECT, site, "loss")
    apart(pdf.write, volume, tmp_path / "one.pdf")
    hold(tmp_path / "one.pdf", volume)
