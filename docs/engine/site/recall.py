"""Three questions from earlier chapters open each chapter, folded.

A hook of MkDocs. The questions are the interview questions of those chapters, as they
stand there: the same that the cards of a day ask. The first is of the latest chapter
that a chapter builds on. The others are those that were asked least so far, first of
the chapters that it builds on, so that few come twice. A question whose answer has code
is left out.

They are put in when the page is built, and stand in no source. So they count neither as
words of the core nor as minutes, and are in no notebook and no copy.
"""

import contextlib
import itertools
import re
from collections import Counter
from textwrap import indent
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page as SitePage

from engine.pages.blocks import PageError, find_fences, indent_of
from engine.pages.reading import Page
from engine.site.slides import moved

COUNT = 3
_QUESTION = re.compile(r'\?\?\?\+? question "(?P<asked>.+)"\s*$')
_FIRST = re.compile(r"^## ", re.MULTILINE)


class Question(NamedTuple):
    """A question of a chapter, and its answer, as Markdown."""

    page: Page
    asked: str
    answer: str

    def markdown(self) -> str:
        """Write it as a fold in a page of the same folder."""
        anchor = "#interview-questions" if self.page.is_chapter else ""
        where = f"[{self.page.title}]({self.page.path.name}{anchor})"
        text = f"{moved(self.page, self.answer, '')}\n\n*From* {where}"
        return f'??? question "{self.asked}"\n\n{indent(text, "    ")}'


def questions_of(page: Page) -> list[Question]:
    """Return the questions of a page that have no code in their answers."""
    lines = page.body  # an answer embeds nothing: what does is code
    code = {n for x in find_fences(lines) for n in range(x.start, x.end + 1)}
    found = []
    for start, line in enumerate(lines, 1):
        if asked := _QUESTION.match(line):
            answer = [*itertools.takewhile(_inside, lines[start:])]
            if code.isdisjoint(range(start, start + len(answer))):
                text = "\n".join(x[4:] for x in answer).strip()
                found.append(Question(page, asked["asked"], text))
    return found


def _inside(line: str) -> bool:
    return not line.strip() or indent_of(line) >= 4


def all_recalled(chapters: list[Page]) -> dict[str, list[Question]]:
    """Choose the questions of each chapter, by its name, from those before it."""
    pages = {page.path.name: page for page in chapters}
    questions = {name: questions_of(page) for name, page in pages.items()}
    asked: Counter[Question] = Counter()
    found = {}
    for number, page in enumerate(chapters):
        names = _before(page, {x.path.name: x for x in chapters[:number]})
        every = [x for name in names for x in questions[name]]
        latest = questions[names[0]] if names else []
        first = sorted(latest, key=lambda x: asked[x])[:1]  # equals keep their order
        rest = sorted((x for x in every if x not in first), key=lambda x: asked[x])
        chosen = [*first, *rest][:COUNT]
        asked.update(chosen)
        if page.is_chapter and len(chosen) == COUNT:
            found[page.name] = chosen
    return found


def _before(page: Page, earlier: dict[str, Page]) -> list[str]:
    """Return what a chapter builds on, what these build on, and all else before it."""
    order, found = [*earlier], list[str]()
    level = page.meta.get("builds_on") or []
    while level:
        new = {*level} & {*order} - {*found}
        latest = sorted(new, key=order.index, reverse=True)
        level = [y for x in latest for y in earlier[x].meta.get("builds_on") or []]
        found += latest
    return found + [x for x in reversed(order) if x not in found]


def opening(questions: list[Question]) -> str:
    """Write the fold that opens a chapter."""
    head = '??? question "Do you remember? Three questions from earlier chapters"'
    inside = indent("\n\n".join(x.markdown() for x in questions), "    ")
    told = '<div class="recall" data-search-exclude markdown>'
    return f"{told}\n\n{head}\n\n{inside}\n\n</div>"


def on_page_markdown(
    markdown: str, page: SitePage, config: MkDocsConfig, **_: Any
) -> str:
    """MkDocs: put them between the title and the question of a chapter."""
    if page.meta.get("kind") != "chapter":
        return markdown
    if "recalled" not in config.extra:
        config.extra["recalled"] = {}
        with contextlib.suppress(PageError):  # which the engine tells
            config.extra["recalled"] = all_recalled(config.extra["chapters"])
    asked = config.extra["recalled"].get(page.file.name)
    return with_opening(markdown, asked) if asked else markdown


def with_opening(markdown: str, asked: list[Question]) -> str:
    """Return a chapter with the fold above its first section."""
    return _FIRST.sub(lambda x: f"{opening(asked)}\n\n{x[0]}", markdown, count=1)
