"""Minutes of a chapter, of its core and of each fold of depth.

A hook of MkDocs: a chapter's header says how long its core and all of it take, and has
a switch that opens and closes the folds (`assets/js/depth.js`); each summary says what
its fold takes. The minutes are measured by `engine.pages.depth`.
"""

import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page as SitePage

from engine.pages.blocks import PageError
from engine.pages.depth import minutes_of, size_of
from engine.pages.reading import Page

_SUMMARY = re.compile(
    r'<details class="depth" id="(?P<id>[^"]*)">\s*<summary>(?P<title>.*?)</summary>',
    re.DOTALL,
)


def on_page_markdown(
    markdown: str, page: SitePage, config: MkDocsConfig, **_: Any
) -> str:
    """MkDocs: tell the theme the minutes of a chapter."""
    for chapter in _chapters(page, config):
        core, whole = minutes_of(chapter)
        page.meta["minutes"] = _whole(whole)
        if chapter.depths:
            page.meta["core_minutes"] = _whole(core)
    return markdown


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: put the minutes of each fold behind its summary."""
    for chapter in _chapters(page, config):
        html = with_minutes(html, chapter)
    return html


def _chapters(page: SitePage, config: MkDocsConfig) -> list[Page]:
    """Return the page as the engine reads it, if it is a chapter that can be read."""
    if page.meta.get("kind") != "chapter":
        return []
    found = [x for x in config.extra["chapters"] if x.file == page.file.src_uri]
    try:
        for chapter in found:
            _ = chapter.blocks, chapter.depths
    except PageError:  # which the engine tells
        return []
    return found


def with_minutes(html: str, page: Page) -> str:
    """Return the HTML of a page whose folds say how long they take."""
    depths = {x.id: x for x in page.depths}

    def summary(match: re.Match[str]) -> str:
        depth = depths.get(match["id"])
        if depth is None:
            return match[0]
        if depth.draws:  # no reading, and not opened with all others
            return match[0].replace('class="depth"', 'class="depth drawing"', 1)
        told = f"{_whole(size_of(page, depth).minutes)} min"
        minutes = f' <span class="depth-minutes">{told}</span>'
        return match[0].replace("</summary>", f"{minutes}</summary>")

    return _SUMMARY.sub(summary, html)


def _whole(minutes: float) -> int:
    return max(1, round(minutes))
