"""Write a chapter as plain Markdown: for programs, and for people who read them.

Snippets are in their places, tabs and boxes opened up, links absolute, and figures are
links. Every block of code that the page shows is there.
"""

import re
from collections.abc import Mapping

from engine.copies.notebooks import cut, link_from, texts_of
from engine.pages.blocks import Fence
from engine.pages.reading import Page

_TITLE = re.compile(r'\btitle="[^"]*"')
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def as_markdown(page: Page, lists: Mapping[str, list[str]]) -> str:
    """Return a page as Markdown that needs nothing of the site.

    `lists` says what stands where a line asks for a list of chapters.
    """
    code = {fence.start: _fence(fence) for fence in page.fences}
    texts = texts_of(page)
    for index, line in page.prose:
        if rows := lists.get(line.strip()):
            texts[index] = _LINK.sub(
                lambda x: f"]({link_from(page.project, page.path, x['target'])})",
                "\n".join(rows),
            )
    parts = [x if isinstance(x, str) else code[x] for x in cut(texts, code)]
    heading, _, first = parts[0].partition("\n")
    parts[0] = "\n\n".join([heading, *_about(page), first.strip("\n")])
    return "\n\n".join(parts) + "\n"


def _about(page: Page) -> list[str]:
    """Return what the site shows under the title of a chapter."""
    address = page.project.page_url(page.path)
    goals = [f"- {goal}" for goal in page.meta.get("goals") or []]
    said = [f"*This is <{address}> as Markdown.*"]
    return [*said, "After this you can", "\n".join(goals)] if goals else said


def _fence(fence: Fence) -> str:
    """Return a block moved to the left, with the name of the file that it is from."""
    title = _TITLE.search(fence.opening)
    info = " ".join([fence.language or "text", *([title[0]] if title else [])])
    return f"{fence.ticks}{info}\n{fence.code}\n{fence.ticks}"
