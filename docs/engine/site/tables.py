"""Tables: the corner above the names of rows is no heading, and code gets room.

Cells with code or a formula are marked here: a style that asks with `:has()` makes a
browser look at all of them again whenever something is put into the page.
"""

import re
from typing import Any

_CORNER = re.compile(r"<th(?P<attributes>(?:\s[^>]*)?)>\s*</th>")
_CELL = re.compile(
    r"<td(?P<style>(?: style=\"[^\"]*\")?)>(?P<inside>.*?)</td>", re.DOTALL
)
_CODE = re.compile(r"<code|class=\"arithmatex")


def on_page_content(html: str, **_: Any) -> str:
    """Make an empty heading a cell: a screen reader would announce it."""
    return with_marked_code(without_empty_headings(html))


def without_empty_headings(html: str) -> str:
    """Return a page whose empty table headings are cells."""
    return _CORNER.sub(r"<td\g<attributes>></td>", html)


def with_marked_code(html: str) -> str:
    """Return a page whose cells with code or formulas have the class `with-code`."""

    def mark(match: re.Match[str]) -> str:
        if not _CODE.search(match["inside"]):
            return match[0]
        return f'<td{match["style"]} class="with-code">{match["inside"]}</td>'

    return _CELL.sub(mark, html)
