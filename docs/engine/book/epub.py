"""The book as an EPUB 3, which EbookLib packs."""

import html
from pathlib import Path

from ebooklib import epub  # type: ignore[import-untyped]

from engine.book import cover
from engine.book.chapters import Chapter
from engine.book.volume import Volume

STYLES = ("style/book.css", "style/formulas.css")
# What the book offers, in the words of https://www.w3.org/2021/a11y-discov-vocab/
_ACCESS = {
    "accessMode": ("textual", "visual"),
    "accessModeSufficient": ("textual",),
    "accessibilityFeature": (
        *("alternativeText", "MathML", "tableOfContents", "structuralNavigation"),
        *("readingOrder", "displayTransformability"),
    ),
    "accessibilityHazard": ("none",),
    "accessibilitySummary": ("Figures have descriptions, and formulas are MathML.",),
}


def write(volume: Volume, target: Path) -> None:
    """Write the EPUB."""
    book = epub.EpubBook()
    book.set_identifier(f"{volume.address}#{volume.version}")
    book.set_title(volume.title)
    book.set_language("en")
    book.add_author(volume.author)
    book.add_metadata("DC", "description", volume.about)
    book.add_metadata("DC", "rights", "MIT licence")
    book.add_metadata("DC", "source", volume.address)
    for name, values in _ACCESS.items():
        for value in values:
            book.add_metadata(None, "meta", value, {"property": f"schema:{name}"})
    below = f"Core chapters, version {volume.version}"
    picture = cover.png(volume.title, volume.about, below)
    book.set_cover("cover.png", picture, create_page=False)
    image = f'<p class="cover"><img src="cover.png" alt="{volume.title}: {below}"/></p>'
    front = _page("cover", xhtml("Cover", image))
    book.add_item(front)
    for path, text in zip(STYLES, (volume.style, volume.of_formulas), strict=True):
        book.add_item(epub.EpubItem(None, path, "text/css", text.encode()))
    for path, svg in volume.pictures.items():
        book.add_item(epub.EpubItem(None, path, "image/svg+xml", svg.encode()))
    pages = [_chapter(chapter) for chapter in volume.chapters]
    for page in pages:
        book.add_item(page)
    book.toc = [
        (
            epub.Section(chapter.title, f"{chapter.name}.xhtml"),
            [
                epub.Link(f"{chapter.name}.xhtml#{x}", said, f"{chapter.name}-{x}")
                for x, said in chapter.sections
            ],
        )
        for chapter in volume.chapters
    ]
    book.add_item(epub.EpubNcx())
    contents = epub.EpubNav(title="Contents")
    contents.add_link(href=STYLES[0], rel="stylesheet", type="text/css")
    book.add_item(contents)
    book.spine = [front, "nav", *pages]
    epub.write_epub(str(target), book, {"raise_exceptions": True})


def _chapter(chapter: Chapter) -> epub.EpubItem:
    inner = chapter.body.decode_contents(formatter="minimal")
    page = _page(chapter.name, xhtml(chapter.title, inner))
    page.properties = ["mathml"] if chapter.body.find("math") else []
    return page


def _page(name: str, text: str) -> epub.EpubItem:
    """Return a page as a file; EbookLib's own class would parse it as HTML."""
    kind = "application/xhtml+xml"
    page = epub.EpubItem(name, f"{name}.xhtml", kind, text.encode())
    page.is_linear = True
    return page


def xhtml(title: str, inner: str) -> str:
    """Return a page of the book."""
    styles = "".join(f'<link rel="stylesheet" href="{path}"/>' for path in STYLES)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en">'
        f"<head><title>{html.escape(title)}</title>{styles}</head>\n"
        f"<body>{inner}</body></html>\n"
    )
