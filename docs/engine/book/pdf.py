"""The book as a PDF, which Chromium prints from one document."""

import base64
import copy
import html
import itertools
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from engine.book import cover
from engine.book.chapters import Chapter
from engine.book.volume import Volume
from engine.browser import FLAGS, chromium

_HERE = Path(__file__).parent
_CONTENTS = "<!-- contents -->"
_LONG = 30 * 60 * 1000  # ms: a thousand pages on a slow machine


def write(volume: Volume, target: Path) -> None:
    """Print the PDF, twice: contents can name pages only when these are known."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for path, svg in volume.pictures.items():
            file = Path(folder, path)
            file.parent.mkdir(exist_ok=True)
            file.write_text(svg, "utf-8")
        page = Path(folder, "book.html")
        text = document(volume)
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=FLAGS.split()
        )
        tab = browser.new_page()
        tab.set_default_timeout(_LONG)
        pages: list[int] = []
        for _ in range(2):
            page.write_text(text.replace(_CONTENTS, contents(volume, pages)), "utf-8")
            tab.goto(page.as_uri(), wait_until="load")
            tab.evaluate("document.fonts.ready.then(() => 0)")
            tab.pdf(path=target, prefer_css_page_size=True, outline=True, tagged=True)
            pages = _first_pages(target)
        browser.close()


def document(volume: Volume) -> str:
    """Return all chapters as one document, with a cover and a place for contents."""
    style = "\n".join(
        [volume.fonts, volume.style, (_HERE / "print.css").read_text("utf-8")]
    )
    parts = [_joined(chapter) for chapter in volume.chapters]
    below = f"Core chapters, version {volume.version}"
    picture = cover.png(volume.title, volume.about, below)
    data = base64.b64encode(picture).decode("ascii")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(volume.title)}</title><style>{style}</style></head><body>"
        f'<div class="cover"><img alt="Cover" src="data:image/png;base64,{data}"></div>'
        f"{_CONTENTS}{''.join(parts)}</body></html>"
    )


def contents(volume: Volume, pages: list[int]) -> str:
    """Return the list of chapters, with their pages if these are known."""
    rows = "".join(
        f'<li><a href="#{chapter.name}">{html.escape(chapter.title)} '
        f"<span>{page}</span></a></li>"
        for chapter, page in itertools.zip_longest(volume.chapters, pages, fillvalue=0)
        if isinstance(chapter, Chapter)
    )
    return f'<nav class="contents"><h1>Contents</h1><ol>{rows}</ol></nav>'


def _first_pages(file: Path) -> list[int]:
    """Return the pages where chapters begin, as the outline of a PDF has them."""
    reader = PdfReader(file)
    tops = [entry for entry in reader.outline if not isinstance(entry, list)]
    numbers = [reader.get_destination_page_number(entry) for entry in tops]
    return [number + 1 for number in numbers[1:] if number is not None]


def _joined(chapter: Chapter) -> str:
    """Return a chapter whose ids and links hold in one document of all chapters."""
    body = copy.copy(chapter.body)
    for tag in body.find_all(id=True):
        tag["id"] = f"{chapter.name}.{tag['id']}"
    for link in body("a", href=True):
        page, _, place = str(link["href"]).partition("#")
        name = page.removesuffix(".xhtml")
        if not page or (name != page and "/" not in name):
            name = name or chapter.name
            link["href"] = f"#{name}.{place}" if place else f"#{name}"
    inner = body.decode_contents(formatter="minimal")
    return f'<section class="chapter" id="{chapter.name}">{inner}</section>'
