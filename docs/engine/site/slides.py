"""Slides of a chapter, cut from its core: nothing of them is a second text.

A slide is a question, a figure with its caption, the formula or its letters, a
prediction with its answers, or the mistakes. They are Markdown, in which links and
figures are those of the chapter; `engine.site.paths` makes a page of each week's.
"""

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import NamedTuple

from engine.pages.blocks import indent_of
from engine.pages.depth import HEADING
from engine.pages.reading import Page

FOLDER = "slides"  # in docs/, beside chapters/
_FIGURE = re.compile(r"!\[")
_PREDICT = re.compile(r"!!! question predict ")
_CHOICE = re.compile(r'\?\?\? answer (?P<right>right )?"(?P<says>.*)"$')
_TARGET = re.compile(r"\]\((?P<target>(?![a-z]+:|/|\.\./)[^)\s]+)")


class Slide(NamedTuple):
    """A heading, and what stands below it, as Markdown."""

    title: str
    body: str

    def markdown(self) -> str:
        """Write it as a section of a page."""
        opening = '<section class="slide" markdown>'
        return f"{opening}\n\n## {self.title}\n\n{self.body}\n\n</section>"


def slides_of(page: Page) -> list[Slide]:
    """Cut the core of a chapter into slides."""
    goals = "\n".join(f"- {goal}" for goal in page.meta["goals"])
    question = f"**{page.meta['question']}**\n\nAfter this you can\n\n{goals}"
    first = Slide(f"[{page.title}](../chapters/{page.path.name})", question)
    found = [first]
    for slide in _cut(page):
        body = moved(page, slide.body, "../chapters/")
        if slide.title == found[-1].title and "$$" in body:  # formulas of one section
            found[-1] = Slide(slide.title, f"{found[-1].body}\n\n{body}")
        else:
            found.append(Slide(slide.title, body))
    return found


def _cut(page: Page) -> Iterator[Slide]:
    title = section = ""
    for chunk in _chunks(page):
        heading = HEADING.match(chunk[0])
        if heading:
            title = heading["text"]
            section = title if chunk[0].startswith("## ") else section
        elif _FIGURE.match(chunk[0]):
            yield Slide(title, chunk[0])
        elif _PREDICT.match(chunk[0]):
            yield Slide("Predict", _prediction(chunk[1:]))
        elif section == "The formula" and chunk[0].startswith("$$"):
            yield Slide(title, "\n".join(chunk))
        elif section == "The formula" and chunk[0].startswith("| symbol"):
            yield Slide("Letters and shapes", "\n".join(chunk))
        elif section == "Mistakes people make" and chunk[0].startswith("|"):
            yield Slide(section, "\n".join(chunk))


def _chunks(page: Page) -> Iterator[list[str]]:
    """Yield the paragraphs of the core, without code; a box is one, with its code."""
    folded = {n for x in page.depths for n in range(x.start, x.end + 1)}
    prose, chunk = dict(page.prose), list[str]()
    for number, line in enumerate([*page.lines, ""]):
        in_box = bool(chunk) and chunk[0].startswith(("!!!", "???", "==="))
        shown = number in prose and number not in folded and line.strip()
        if in_box and (not line.strip() or indent_of(line)):
            chunk.append(line)
        elif in_box or not shown:
            if chunk:
                yield chunk
            chunk = [line] if shown else []
        elif _FIGURE.match(line):  # it may stand in HTML, in place of a live piece
            chunk = [line]
        else:
            chunk.append(line)


def _prediction(lines: Sequence[str]) -> str:
    """Write a question, its choices, and below, folded, the one that is right."""
    inside = dedent("\n".join(lines))
    asked, *rest = re.split(r"^(?=\?\?\? )", inside, flags=re.MULTILINE)
    choices, answer = [], ""
    for box in rest:
        head, _, told = box.partition("\n")
        if choice := _CHOICE.match(head):
            choices.append(f"- {choice['says']}")
            if choice["right"]:
                said = f"*{choice['says']}.* {dedent(told).strip()}"
                answer = "\n".join(f"    {x}".rstrip() for x in said.split("\n"))
    listed = "\n".join(choices)
    return f'{asked.strip()}\n\n{listed}\n\n??? note "Answer"\n\n{answer}'


def moved(page: Page, text: str, folder: str) -> str:
    """Let links of a chapter lead to the same places from a page beside `folder`."""

    def lead(match: re.Match[str]) -> str:
        target = match["target"]
        file = page.path.name if target.startswith("#") else ""
        return f"]({folder}{file}{target}"

    return _TARGET.sub(lead, text)
