"""Write a chapter as plain Markdown: for programs, for people who read them, notebooks.

Snippets are in their places, tabs and boxes opened up, links absolute, and figures are
links. Every block of code that the page shows is there.
"""

import itertools
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from engine.pages.blocks import Fence, indent_of
from engine.pages.reading import Page
from engine.project import Project

_TITLE = re.compile(r'\btitle="[^"]*"')
_TARGET = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def as_markdown(page: Page, lists: Mapping[str, list[str]]) -> str:
    """Return a page as Markdown that needs nothing of the site.

    `lists` says what stands where a line asks for a list of chapters.
    """
    code = {fence.start: _fence(fence) for fence in page.fences}
    texts = texts_of(page)
    for index, line in page.prose:
        if rows := lists.get(line.strip()):
            texts[index] = _TARGET.sub(
                lambda x: f"]({link_from(page.project, page.path, x['target'])})",
                "\n".join(rows),
            )
    parts = [x if isinstance(x, str) else code[x] for x in cut(texts, code)]
    heading, _, first = parts[0].partition("\n")
    parts[0] = "\n\n".join([heading, *_about(page), first.strip("\n")])
    return "\n\n".join(parts) + "\n"


def _about(page: Page) -> list[str]:
    """Return what the site shows under the title of a chapter."""
    goals = [f"- {goal}" for goal in page.meta.get("goals") or []]
    said = [f"*This is <{page.url}> as Markdown.*"]
    return [*said, "After this you can", "\n".join(goals)] if goals else said


def _fence(fence: Fence) -> str:
    """Return a block moved to the left, with the name of the file that it is from."""
    title = _TITLE.search(fence.opening)
    info = " ".join([fence.language or "text", *([title[0]] if title else [])])
    return f"{fence.ticks}{info}\n{fence.code}\n{fence.ticks}"


def texts_of(page: Page) -> dict[int, str]:
    """Return the prose of a page as a notebook has it, by the index of each line."""
    lines = ((index, notebook_markdown(page, x)) for index, x in flat_lines(page))
    return {index: text for index, text in lines if text is not None}


def cut(texts: dict[int, str], code: Collection[int]) -> Iterator[str | int]:
    """Yield the text above each line of code, the index of that line, and the rest."""
    indices = sorted({*texts, *code})
    for is_code, group in itertools.groupby(indices, lambda index: index in code):
        if is_code:
            yield from group
            continue
        lines = "\n".join(texts[index] for index in group)
        text = re.sub(r"\n{3,}", "\n\n", lines).strip("\n")
        if text.strip("> \n"):
            yield text


_BOX = re.compile(r'(?:!!!|\?\?\?\+?)\s+(?P<kind>[\w-]+)[^"]*(?:"(?P<title>.*)")?\s*$')
_TAB = re.compile(r'===[+!]*\s+"(?P<title>.*)"\s*$')
_STEP = 4


def flat_lines(page: Page) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of fences with their index, tabs and boxes opened up.

    The title of a tab, a box or a fold becomes a bold line; what was in it is moved
    left.
    """
    depth = 0
    for index, line in page.prose:
        while line.strip() and depth and indent_of(line) < depth:
            depth -= _STEP
        text = line[depth:] if line.strip() else ""
        if (mark := page.depth_marks.get(index)) is not None:
            text = f"**{mark}**" if mark else ""
        title = _title(text.strip())
        if title is not None and indent_of(text) % _STEP == 0:
            depth += indent_of(text) + _STEP
            text = f"**{title}**" if title else ""
        yield index, text


def _title(text: str) -> str | None:
    """Return the title of a tab or box that begins here."""
    found = _TAB.match(text) or _BOX.match(text)
    if found is None:
        return None
    return found["kind"].title() if found["title"] is None else found["title"]


_CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_MATH = re.compile(r"\\\((.+?)\\\)")
_DISPLAY = re.compile(r"\\[\[\]]")  # either end of it
_LINK = re.compile(r"(\]\(|^\s*\[[^\]^]+\]:\s+)(<?)([^)\s>]+)")
_COMMENT = re.compile(r"<!--.*?-->")
# What is around a picture that is live on the site.
_NOWHERE = re.compile(r"\s*</?figure\b")
_FOOTNOTE = re.compile(r"\[\^([\w-]+)\](:?)")
# `{ #id .class key="value" }` after a heading, a link, a span or a blank; TeX has
# braces too, but not such text in them.
_VALUE = r'[\w-]+=(?:"[^"]*"|[\w-]+)'
_ATTRIBUTES = re.compile(
    rf"(?:^|(?<=[\s)\]`*]))\{{:?\s*(?:[#.][A-Za-z][\w-]*|{_VALUE})(?:\s+(?:[#.][\w-]+|{_VALUE}))*\s*\}}"
)


def notebook_markdown(page: Page, line: str) -> str | None:
    """Return a line of the page for a notebook, or None if it has no place there."""
    if _NOWHERE.match(line):
        return None
    written, end = "", 0
    for span in _CODE_SPAN.finditer(line):
        # Without the language that it names for highlighting.
        code = re.sub(r"^(`+)(?:#!|:::)\w+ ", r"\1", span[0])
        written += _prose(page, line[end : span.start()]) + code
        end = span.end()
    return (written + _prose(page, line[end:])).rstrip()


def link_from(project: Project, file: Path, target: str) -> str:
    """Return a link in a file of docs/ as it works anywhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return target
    path, hash_, anchor = target.partition("#")
    if not path:
        return project.page_url(file) + hash_ + anchor
    there = posixpath.normpath(posixpath.join(file.parent.as_posix(), path))
    return project.page_url(Path(there)) + hash_ + anchor


def _prose(page: Page, text: str) -> str:
    for dropped in (_COMMENT, _ATTRIBUTES):
        text = dropped.sub("", text)
    text = _MATH.sub(lambda math: f"${math[1].strip()}$", text)
    text = _FOOTNOTE.sub(r"<sup>\1</sup>", _DISPLAY.sub("$$", text))
    return _LINK.sub(
        lambda link: link[1] + link[2] + link_from(page.project, page.path, link[3]),
        text,
    )
