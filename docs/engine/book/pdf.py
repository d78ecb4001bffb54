"""The book as a PDF, which Chromium prints from one document."""

import base64
import html
import tempfile
from pathlib import Path

from bs4 import Tag
from playwright.sync_api import sync_playwright

from engine.book import cover
from engine.book.chapters import Chapter
from engine.book.folds import new
from engine.book.volume import Volume
from engine.browser import FLAGS, chromium

_HERE = Path(__file__).parent
_LONG = 30 * 60 * 1000  # ms: a thousand pages on a slow machine


def write(volume: Volume, target: Path) -> None:
    """Print the PDF."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = _files(volume, Path(folder))
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=FLAGS.split()
        )
        tab = browser.new_page()
        tab.set_default_timeout(_LONG)
        tab.goto(page.as_uri(), wait_until="load")
        tab.evaluate("document.fonts.ready.then(() => 0)")
        tab.pdf(path=target, prefer_css_page_size=True, outline=True, tagged=True)
        browser.close()


def _files(volume: Volume, folder: Path) -> Path:
    """Write what is printed into a folder; return its page."""
    for path, svg in volume.pictures.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(svg, "utf-8")
    below = f"Core chapters, version {volume.version}"
    picture = cover.png(volume.title, volume.about, below)
    page = folder / "book.html"
    page.write_text(document(volume, picture), "utf-8")
    return page


def document(volume: Volume, picture: bytes) -> str:
    """Return all chapters as one document, with a cover and contents."""
    style = "\n".join(
        [volume.fonts, volume.style, (_HERE / "print.css").read_text("utf-8")]
    )
    parts = [_joined(chapter) for chapter in volume.chapters]
    data = base64.b64encode(picture).decode("ascii")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(volume.title)}</title><style>{style}</style></head><body>"
        f'<div class="cover"><img alt="Cover" src="data:image/png;base64,{data}"></div>'
        f"{contents(volume)}{''.join(parts)}</body></html>"
    )


def contents(volume: Volume) -> Tag:
    """Return the list of chapters and their sections, with links."""
    nav = new("nav", class_="contents")
    nav.append(new("h1", "Contents"))
    for chapter in volume.chapters:
        title, sections = new("p"), new("ul")
        title.append(new("a", chapter.title, href=f"#{chapter.name}"))
        for place, said in chapter.sections:
            item = new("li")
            item.append(new("a", said, href=f"#{chapter.name}.{place}"))
            sections.append(item)
        nav.extend([title, sections])
    return nav


def _joined(chapter: Chapter) -> str:
    """Return a chapter whose ids and links hold in one document of all chapters."""
    for tag in chapter.body.find_all(id=True):
        tag["id"] = f"{chapter.name}.{tag['id']}"
    for link in chapter.body("a", href=True):
        page, _, place = str(link["href"]).partition("#")
        name = page.removesuffix(".xhtml")
        if not page or (name != page and "/" not in name):
            name = name or chapter.name
            link["href"] = f"#{name}.{place}" if place else f"#{name}"
    inner = chapter.body.decode_contents(formatter="minimal")
    return f'<section class="chapter" id="{chapter.name}">{inner}</section>'
