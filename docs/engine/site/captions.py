"""Figures, pictures and tables: `![what is seen](../figures/x.svg "What it *shows*.")`.

A Markdown extension. The title of an image that stands alone becomes the caption, in
which Markdown and formulas work; a notebook shows a plain image. A figure of the engine
also gets its size, so that nothing moves when it arrives, and the width below which its
text could not be read: on a phone, it then scrolls in a box of its own. The folded code
that draws a figure stands before it in the source, and is run; a reader sees the figure
first. All pictures but the first come when they are nearly seen.

In tables, the corner above the names of rows is no heading, which a screen reader would
announce, and cells with code or a formula are marked: a style that asks with `:has()`
makes a browser look at all of them again whenever something is put into the page.
"""

import html
import re
import xml.etree.ElementTree as etree
from pathlib import Path
from typing import Any

from markdown import Markdown  # type: ignore[import-untyped]
from markdown.extensions import Extension  # type: ignore[import-untyped]
from markdown.inlinepatterns import InlineProcessor  # type: ignore[import-untyped]
from markdown.treeprocessors import Treeprocessor  # type: ignore[import-untyped]

from engine.pages.depth import DRAWS
from engine.run.figures import PHONE, Size, size_of

_IMAGE = r'!\[([^\]]*)\]\(([^)\s]+)\s+"((?:[^"\\]|\\.)*)"\s*\)'
FIGURES = Path("docs/figures")  # where the engine's are
CAPTION = "data-caption"  # the title as it is written, until `_Figures` takes it


class _Titled(InlineProcessor):  # type: ignore[misc]
    """Reads an image with a title before its title loses its Markdown."""

    def handleMatch(
        self, m: re.Match[str], data: str
    ) -> tuple[etree.Element, int, int]:
        del data
        alt, target, title = m.groups()
        attributes = {"alt": html.unescape(self.unescape(alt)), "src": target}
        image = etree.Element("img", attributes | {CAPTION: title.replace('\\"', '"')})
        return image, m.start(0), m.end(0)


class _Figures(Treeprocessor):  # type: ignore[misc]
    """Puts an image that stands alone in a paragraph into a figure."""

    def run(self, root: etree.Element) -> None:
        """Change the tree of a page."""
        for paragraph in [x for x in root.iter("p") if len(x) == 1]:
            image = paragraph[0]
            alone = not f"{paragraph.text or ''}{image.tail or ''}".strip()
            if image.tag == "img" and alone:
                size = _size(image.get("src", ""))
                if size or CAPTION in image.attrib:
                    self._frame(paragraph, image, size)
        for number, image in enumerate(root.iter("img")):
            if CAPTION in image.attrib:  # in the middle of a text
                image.set("title", image.attrib.pop(CAPTION))
            if number:
                image.attrib |= {"loading": "lazy", "decoding": "async"}
        for parent in root.iter():
            _figures_first(parent)
        for cell in [*root.iter("th"), *root.iter("td")]:
            if cell.tag == "th" and not len(cell) and not (cell.text or "").strip():
                cell.tag = "td"
            elif cell.tag == "td" and {"code", "arithmatex"}.intersection(
                name for x in cell.iter() for name in (x.tag, x.get("class"))
            ):
                cell.set("class", "with-code")

    def _frame(
        self, paragraph: etree.Element, image: etree.Element, size: Size | None
    ) -> None:
        caption = image.attrib.pop(CAPTION, "")
        image.tail = None
        paragraph.tag, paragraph.text = "figure", "\n"
        paragraph.set("class", "figure")
        paragraph.remove(image)
        box = etree.SubElement(paragraph, "div", {"class": "figure-box"})
        box.append(image)
        if size:
            image.set("width", image.get("width", str(size.width)))
            image.set("height", image.get("height", str(size.height)))
        if size and size.least_width > PHONE:
            image.set("style", f"min-width:{size.least_width}px")
            told = "A wide figure, which scrolls"
            box.attrib |= {"role": "group", "aria-label": told}
        if caption:
            alone = etree.Element("div")  # which itself is not looked into
            said = etree.SubElement(alone, "figcaption")
            said.text = caption
            self.md.treeprocessors["inline"].run(alone)
            paragraph.append(said)


def _size(source: str) -> Size | None:
    """Return the size of a figure of the engine, once it was drawn."""
    path = FIGURES / source.partition("#")[0].rpartition("/")[2]
    if "figures/" not in source or path.suffix != ".svg" or not path.is_file():
        return None
    return size_of(path.read_text("utf-8"))


def _figures_first(parent: etree.Element) -> None:
    """Put a figure before the folded code that draws it."""
    for i in range(len(parent) - 1):
        fold, figure = parent[i], parent[i + 1]
        summary = fold.find("summary") if fold.tag == "details" else None
        said = "" if summary is None else "".join(summary.itertext())
        if figure.tag == "figure" and DRAWS.match(said):
            parent[i], parent[i + 1] = figure, fold


class CaptionExtension(Extension):  # type: ignore[misc]
    """Figures with captions, late pictures, and tables."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Register the two steps."""
        # Before code spans (190) and formulas, which would be taken out of the title.
        md.inlinePatterns.register(_Titled(_IMAGE, md), "titled_image", 195)
        # After attribute lists (8), and before MkDocs mends links (0).
        md.treeprocessors.register(_Figures(md), "figures", 6)


def makeExtension(**options: Any) -> CaptionExtension:
    """Return the extension, as Markdown looks for it."""
    return CaptionExtension(**options)
