"""Take the content of tabs and admonitions out of its indentation."""

import re
from collections.abc import Iterator

from engine.lines import indent_of
from engine.page import Page

_BOX = re.compile(r'(?:!!!|\?\?\?\+?)\s+(?P<kind>[\w-]+)[^"]*(?:"(?P<title>.*)")?\s*$')
_TAB = re.compile(r'===[+!]*\s+"(?P<title>.*)"\s*$')
_STEP = 4


def flat_lines(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of fences with their index, tabs and boxes opened up.

    The title of a tab or a box becomes a bold line; what was in it is moved left.
    """
    inside = {n for f in page.fences for n in range(f.start, f.end + 1)}
    depth = 0
    for index, line in enumerate(page.lines):
        if index in inside:
            continue
        while line.strip() and depth and indent_of(line) < depth:
            depth -= _STEP
        text = line[depth:] if line.strip() else ""
        title = _title(text.strip())
        if title is not None and indent_of(text) % _STEP == 0:
            depth += indent_of(text) + _STEP
            text = f"**{title}**" if title else ""
        yield index, text


def _title(text: str) -> str | None:
    """Return the title of a tab or box that begins here."""
    tab, box = _TAB.match(text), _BOX.match(text)
    if tab:
        return tab["title"]
    if box:
        return box["kind"].title() if box["title"] is None else box["title"]
    return None
