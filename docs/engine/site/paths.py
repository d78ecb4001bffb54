"""Paths through the book: two hours, ten weeks with slides, an index of symptoms.

A hook of MkDocs. `paths.toml` beside this file names the chapters of each path. Minutes
are those that `engine.pages.depth` measures, assignments the exercises of `tformer
check` and of the chapters, slides cut from the chapters, a page for each week.
"""

import contextlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page as SitePage

from engine.mistakes.texts import Texts
from engine.pages.blocks import PageError
from engine.pages.depth import minutes_of
from engine.pages.exercises import answers_of
from engine.pages.reading import Page
from engine.project import Project
from engine.site import project_of
from engine.site.lists import HOME_HEAD, chapters
from engine.site.slides import FOLDER, slides_of
from tformer.check.exercises import EXERCISES

FILE = Path(__file__).with_suffix(".toml")
PAGE = "paths.md"
# What the page says where a list goes.
TWO_HOURS, WEEKS = "<!-- path: two hours -->", "<!-- path: ten weeks -->"
SYMPTOMS = "<!-- path: symptoms -->"
FREE = "search:\n  exclude: true\nhide: [navigation, toc]\n"


class Paths:
    """The paths of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.chapters = {x.name: x for x in chapters(project)}
        asked = tomllib.loads(FILE.read_text("utf-8"))
        self.two_hours = [self.chapters[name] for name in asked["two_hours"]]
        self.weeks: list[list[str]] = asked["weeks"]

    def of_week(self, number: int) -> list[Page]:
        """Return the chapters of a week, counted from 1."""
        names = self.weeks[number - 1]
        return [self.chapters[name] for name in names if name in self.chapters]

    def cores(self) -> str:
        """Write the path of two hours as a table, with the minutes of each core."""
        rows = [f"| Chapter | {HOME_HEAD[0].split('|')[2].strip()} | Minutes |"]
        rows.append("|---|---|---:|")
        for page in self.two_hours:
            minutes = round(minutes_of(page)[0])
            rows.append(f"| {_link(page)} | {page.meta['question']} | {minutes} |")
        total = round(sum(minutes_of(page)[0] for page in self.two_hours))
        return "\n".join([*rows, f"| **All of it** | | **{total}** |"])

    def syllabus(self) -> str:
        """Write the weeks of the course."""
        return "\n\n".join(map(self.week, self.numbers()))

    def numbers(self) -> range:
        """Return the numbers of the weeks."""
        return range(1, len(self.weeks) + 1)

    def week(self, number: int) -> str:
        """Write what is read, written and answered in a week."""
        pages, names = self.of_week(number), self.weeks[number - 1]
        labs = [x for x in names if x not in self.chapters]
        titles = [_link(x) for x in pages] + [f"[the lab]({x})" for x in labs]
        core = sum(minutes_of(x)[0] for x in pages)
        whole = sum(minutes_of(x)[1] for x in pages)
        length = f"{round(core)} minutes" + (
            f" for the cores, {round(whole)} for everything"
            if any(x.depths for x in pages)
            else ""
        )
        slides = f"[Slides]({FOLDER}/week-{number}.md)"
        lines = [f"- **Read** {', '.join(titles)}: {length}. {slides}"]
        if parts := parts_of(pages):
            written = ", ".join(f"[`{x}`](check.md#{x})" for x in parts)
            lines.append(f"- **Write** {written}: `tformer check start {parts[0]}`")
        lines.append(f"- **Answer** {', '.join(map(_exercises, pages))}")
        head = f"### Week {number} {{ #week-{number} }}"
        return "\n\n".join([head, "\n".join(lines)])

    def decks(self) -> Iterator[tuple[str, str]]:
        """Yield the page of slides of each week: its file in docs/, and its text."""
        for number in self.numbers():
            pages = self.of_week(number)
            titles = ", ".join(x.title for x in pages)
            about = f"Slides of week {number}, cut from the chapters: {titles}"
            head = f"---\ntitle: Week {number}\ndescription: >-\n  {about}\n{FREE}---"
            links = f"[All weeks](../{PAGE}#ten-weeks)"
            if number < len(self.weeks):
                links += f" · [Week {number + 1}](week-{number + 1}.md)"
            told = f"# Week {number}\n\n{titles}\n\n{links}\n{{ .slides-links }}"
            slides = (x.markdown() for page in pages for x in slides_of(page))
            yield f"{FOLDER}/week-{number}.md", "\n\n".join([head, told, *slides, ""])


def parts_of(pages: list[Page]) -> list[str]:
    """Return the exercises of `tformer check` that some chapters explain."""
    names = {x.name for x in pages}
    return [n for n, x in EXERCISES.items() if x.chapter.partition("#")[0] in names]


def symptoms(project: Project) -> str:
    """Write what people see, each leading to its place in the atlas of mistakes."""
    every = Texts(project.root).symptoms
    return "\n".join(f"- [{x.title}](mistakes/index.md#{x.anchor})" for x in every)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """MkDocs: add the slides, where the page that leads to them is built."""
    if files.get_file_from_path(PAGE):
        hidden = InclusionLevel.NOT_IN_NAV
        with contextlib.suppress(PageError):  # which the engine tells
            for path, text in Paths(project_of(config)).decks():
                made = File.generated(config, path, content=text, inclusion=hidden)
                files.append(made)
    return files


def on_page_markdown(
    markdown: str, page: SitePage, config: MkDocsConfig, **_: Any
) -> str:
    """MkDocs: put the lists into the page."""
    if page.file.src_uri != PAGE:
        return markdown
    project = project_of(config)
    with contextlib.suppress(PageError):
        paths = Paths(project)
        markdown = markdown.replace(TWO_HOURS, paths.cores())
        markdown = markdown.replace(WEEKS, paths.syllabus())
    return markdown.replace(SYMPTOMS, symptoms(project))


def _link(page: Page) -> str:
    return f"[{page.title}]({page.file})"


def _exercises(page: Page) -> str:
    """Say how many exercises of a chapter a program judges."""
    asked = answers_of(page.project, page.name).values()
    judged = [str(x.number) for x in asked if x.kind != "open"]
    return f"[`{page.name}` {', '.join(judged)}]({page.file}#exercises)"
