"""Tables of many numbers, on a phone: each row a card, each number beside its name.

A hook of MkDocs, for the pages of results. Names are the headings of the columns, which
each cell gets; `tables.css` stacks them where the screen is narrow. Roles are said by
hand: a browser forgets that it is a table once it is laid out as something else.
"""

import re
from typing import Any

from mkdocs.structure.pages import Page

PAGES = {"results.md", "speed.md"}
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
# A heading without text is a <td>: see captions.py.
_HEADING = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup"}
_ROLES["th"] = "columnheader"
_CELL = re.compile(r"<td\b")
_TAG = re.compile(r"<[^>]*>")


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """MkDocs: mark the tables of these pages."""
    return stacked(html) if page.file.src_uri in PAGES else html


def stacked(html: str) -> str:
    """Return a page whose tables can be stacked."""

    def table(match: re.Match[str]) -> str:
        head, end, body = match[0].partition("</thead>")
        names = [" ".join(_TAG.sub(" ", x).split()) for x in _HEADING.findall(head)]

        def row(found: re.Match[str]) -> str:
            each = iter(names)

            def cell(_: re.Match[str]) -> str:
                name = next(each, "").replace('"', "&quot;")
                return f'<td role="cell" data-name="{name}"'

            return f'<tr role="row">{_CELL.sub(cell, found[1])}</tr>'

        head = head.replace("<tr>", '<tr role="row">')
        whole = head + end + _ROW.sub(row, body)
        for tag, role in _ROLES.items():
            whole = re.sub(rf"<{tag}\b", f'<{tag} role="{role}"', whole)
        return whole.replace("<table", "<table data-stacked", 1)

    return _TABLE.sub(table, html)
