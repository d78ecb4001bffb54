"""Rewrite the site's Markdown as notebooks understand it."""

import posixpath
import re
from pathlib import Path

from engine.page import Page

_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_MATH = re.compile(r"\\\((.+?)\\\)")
_DISPLAY = re.compile(r"\\[\[\]]")  # either end of it
_LINK = re.compile(r"(\]\(|^\s*\[[^\]^]+\]:\s+)(<?)([^)\s>]+)")
_ABBREVIATION = re.compile(r"\*\[.+?\]:")
_COMMENT = re.compile(r"<!--.*?-->")
_FOOTNOTE = re.compile(r"\[\^([\w-]+)\](:?)")
_ICON = re.compile(r":(?:material|fontawesome|octicons|simple)-[\w-]+:\s?")
# `{ #id .class key="value" }` after a heading, a link, a span or a blank; TeX has
# braces too, but not such text in them.
_VALUE = r'[\w-]+=(?:"[^"]*"|[\w-]+)'
_ATTRIBUTES = re.compile(
    rf"(?:^|(?<=[\s)\]`*]))\{{:?\s*(?:[#.][A-Za-z][\w-]*|{_VALUE})(?:\s+(?:[#.][\w-]+|{_VALUE}))*\s*\}}"
)


def notebook_markdown(page: Page, line: str) -> str | None:
    """Return a line of the page for a notebook, or None if it has no place there."""
    if _ABBREVIATION.match(line):
        return None
    pieces = []
    end = 0
    for span in _CODE_SPAN.finditer(line):
        pieces += [_prose(page, line[end : span.start()]), _code(span[0])]
        end = span.end()
    return "".join([*pieces, _prose(page, line[end:])]).rstrip()


def absolute(page: Page, target: str) -> str:
    """Return a link of the page as it works anywhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return target
    path, hash_, anchor = target.partition("#")
    if not path:
        return page.project.page_url(page.path) + hash_ + anchor
    file = posixpath.normpath(posixpath.join(page.path.parent.as_posix(), path))
    return page.project.page_url(Path(file)) + hash_ + anchor


def _prose(page: Page, text: str) -> str:
    text = _COMMENT.sub("", text)
    text = _ATTRIBUTES.sub("", text)
    text = _MATH.sub(lambda math: f"${math[1].strip()}$", text)
    text = _DISPLAY.sub("$$", text)
    text = _ICON.sub("", text)
    text = _FOOTNOTE.sub(lambda note: f"<sup>{note[1]}</sup>", text)
    return _LINK.sub(lambda link: link[1] + link[2] + absolute(page, link[3]), text)


def _code(span: str) -> str:
    """Drop the language that a code span names for highlighting."""
    return re.sub(r"^(`+)(?:#!|:::)\w+ ", r"\1", span)
