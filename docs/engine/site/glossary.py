"""Each term of the glossary has an address, stands in a list above, and is searched."""

import re
from html import unescape
from typing import Any

from mkdocs.structure.pages import Page

PAGE = "glossary.md"
_TERM = re.compile(r"<dt>(?P<term>.*?)</dt>\s*<dd>(?P<text>.*?)</dd>", re.DOTALL)
_WORD = re.compile(r"\w+")
_TAG = re.compile(r"<[^>]*>")


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """MkDocs: give each term an anchor, and tell the search of it."""
    if page.file.src_uri != PAGE:
        return html
    html, terms = with_anchors(html)
    page.meta["sections"] = [
        {**term, "location": f"{page.url}#{place}"} for place, term in terms.items()
    ]
    return html


def with_anchors(html: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return a glossary with ids and a list of links; and title and text by id."""
    terms: dict[str, dict[str, str]] = {}

    def named(match: re.Match[str]) -> str:
        title, text = (_TAG.sub("", part) for part in match.groups())
        place = "term-" + "-".join(_WORD.findall(unescape(title).lower()))
        terms[place] = {"title": title, "text": f"<p>{' '.join(text.split())}</p>"}
        return match[0].replace("<dt>", f'<dt id="{place}">', 1)

    html = _TERM.sub(named, html)
    links = "".join(
        f'<li><a href="#{place}">{terms[place]["title"]}</a></li>'
        for place in sorted(terms)
    )
    shown = f'<ul class="glossary-terms" data-search-exclude>{links}</ul>\n'
    return html.replace("<h2", f"{shown}<h2", 1), terms
