"""Tables on a phone: each scrolls in a box; of many numbers, each row is a card.

A hook of MkDocs. The box is the one that Material's script would put around each table
once the page stands: the page was laid out a second time, and moved.

On the pages of results each number stands beside its name, the heading of its column;
`tables.css` stacks them where the screen is narrow. Roles are said by hand: a browser
forgets that it is a table once it is laid out as something else.
"""

import re
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

PAGES = {"results.md", "speed.md"}
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_PLAIN = re.compile(r"<table\b(?![^>]*\sclass=).*?</table>", re.DOTALL)
_BOX = '<div class="md-typeset__scrollwrap"><div class="md-typeset__table">'
# A heading without text is a <td>: see captions.py.
_HEADING = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup"}
_ROLES["th"] = "columnheader"
_CELL = re.compile(r"<td\b")
_TAG = re.compile(r"<[^>]*>")


@event_priority(-50)  # when the other hooks have written theirs
def on_page_content(html: str, page: Page, **_: Any) -> str:
    """MkDocs: put tables into boxes, and mark those of the pages of results."""
    return boxed(stacked(html) if page.file.src_uri in PAGES else html)


def boxed(html: str) -> str:
    """Return a page with each table that has no class in a box that scrolls."""
    return _PLAIN.sub(lambda table: f"{_BOX}{table[0]}</div></div>", html)


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
