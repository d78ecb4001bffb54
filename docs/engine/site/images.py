"""Pictures keep their place while a page loads, and come when they are nearly seen."""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

_IMAGE = re.compile(r"<img\b(?P<attributes>[^>]*?)\s*/?>")
_SOURCE = re.compile(r'\ssrc="([^":]+)"')
_ROOT = re.compile(r"<svg\b[^>]*>")
_SIZE = re.compile(r'\s(width|height)="([\d.]+)(pt|px)?"')
_PIXELS = {"pt": 4 / 3, "px": 1.0, "": 1.0}


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Give the drawings of a page their size."""
    if "<img" not in html:
        return html
    drawings = {
        file.url: Path(file.abs_src_path)
        for file in files
        if file.abs_src_path and file.src_uri.endswith(".svg")
    }

    def size(source: str) -> tuple[int, int] | None:
        path = drawings.get(posixpath.normpath(posixpath.join(page.url, source)))
        return size_of(path.read_text("utf-8")) if path else None

    return with_sizes(html, size)


def with_sizes(html: str, size: Callable[[str], tuple[int, int] | None]) -> str:
    """Return a page whose pictures have a width and a height, and come late.

    The first picture of a page may be seen at once: it comes early.

    Args:
        html: the page.
        size: gives the size of a picture by its address from the page, if it knows it.
    """
    seen = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal seen
        attributes, seen = match["attributes"], seen + 1
        source = _SOURCE.search(attributes)
        if source and " width=" not in attributes and (found := size(source[1])):
            attributes += ' width="{}" height="{}"'.format(*found)
        inside = ' src="data:' in attributes  # the page, which is there already
        if seen > 1 and " loading=" not in attributes and not inside:
            attributes += ' loading="lazy" decoding="async"'
        return f"<img{attributes}>"

    return _IMAGE.sub(mend, html)


def size_of(svg: str) -> tuple[int, int] | None:
    """Return the width and the height that a drawing says it has, in CSS pixels."""
    root = _ROOT.search(svg)
    found = {
        name: float(x) * _PIXELS[unit]
        for name, x, unit in (_SIZE.findall(root[0]) if root else [])
    }
    if len(found) < 2:
        return None
    return round(found["width"]), round(found["height"])
