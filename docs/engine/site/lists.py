"""The lists of chapters: README's table, the home page's, and "The order".

They are made from the navigation in mkdocs.yml and the front matter of each chapter.
MkDocs puts those of the site in (this file is a hook); `python -m engine lists` writes
README's, which GitHub shows as it is; `list_problems` says where they are old.
"""

import itertools
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from mkdocs.utils.meta import get_data

from engine.pages.listing import files_of, unlisted_problem
from engine.project import Project
from engine.site import project_of

log = logging.getLogger("mkdocs.hooks.lists")

README_HEAD = ["| Concept | Chapter | Module |", "|---|---|---|"]
HOME_HEAD = ["| Chapter | The question it answers | Module |", "|---|---|---|"]
# What a page says where a list goes.
TABLE, ORDER = "<!-- chapters: table -->", "<!-- chapters: order -->"

# The twin is taught beside what it equals: not listed again.
_BESIDE = "reference/"
_NEXT = re.compile(r"^Next: \[(?P<said>[^]]+)\]\((?P<file>[^)]+)\)", re.MULTILINE)
_MARKUP = re.compile(r"[`*]|\\[()]")


@dataclass(frozen=True)
class Chapter:
    """A page below chapters/, as the lists show it."""

    file: str  # its path in docs/
    title: str  # its heading
    meta: dict[str, Any]  # its front matter, with `concept` and `question`
    text: str  # all of the file

    @property
    def name(self) -> str:
        """How other chapters call it: `attention.md`."""
        return Path(self.file).name

    @property
    def url(self) -> str:
        """Its address below the home page: `chapters/attention/`."""
        return self.file.removesuffix(".md") + "/"

    @property
    def is_taught(self) -> bool:
        """Whether it teaches a part; the first page only says how to read."""
        return bool(self.meta.get("goals"))

    def modules(self, package: str) -> dict[str, str]:
        """Return the modules that it teaches by their dotted names, and their files."""
        files = {x: x.removeprefix(f"{package}/") for x in self.meta.get("modules", [])}
        return {
            inside.removesuffix(".py").replace("/", "."): file
            for file, inside in files.items()
            if not inside.startswith(_BESIDE)
        }


def chapters(project: Project) -> list[Chapter]:
    """Return the chapters in the order of the navigation."""
    found = []
    for file in files_of(project.config.get("nav") or []):
        path = project.docs / file
        if file.startswith("chapters/") and path.is_file():
            text = path.read_text("utf-8")
            body, meta = get_data(text)
            heading = re.search(r"^# (.+?)\s*(?:\{.*\}\s*)?$", body, re.M)
            title = heading.group(1) if heading else path.stem
            found.append(Chapter(file, title, meta, text))
    return found


def plain(text: str) -> str:
    """Drop the marks of Markdown."""
    return _MARKUP.sub("", text)


def home_table(project: Project) -> list[str]:
    """Return the table of chapters and the questions that they answer."""
    rows = []
    for chapter in chapters(project):
        names = chapter.modules(project.package)
        named = ", ".join(f"[`{x}`][{project.package}.{x}]" for x in names)
        link = f"[{chapter.title}]({chapter.file})"
        rows.append(_row(link, chapter.meta.get("question"), named))
    return [*HOME_HEAD, *rows]


def order(project: Project) -> list[str]:
    """Return the numbered list of the chapters that teach a part."""
    taught = [chapter for chapter in chapters(project) if chapter.is_taught]
    return [
        f"{number}. [{chapter.title}]({chapter.name}): {chapter.meta.get('question')}"
        for number, chapter in enumerate(taught, 1)
    ]


def readme_table(project: Project) -> list[str]:
    """Return README's table of concepts."""
    docs, rows = project.relative(project.docs), []
    for chapter in chapters(project):
        files = chapter.modules(project.package).items()
        named = ", ".join(f"[`{name}`]({file})" for name, file in files)
        link = f"[{chapter.title}]({docs}/{chapter.file})"
        rows.append(_row(chapter.meta.get("concept"), link, named))
    return [*README_HEAD, *rows]


def write_readme(project: Project) -> bool:
    """Write README's table anew; return whether that changed it."""
    path = project.root / "README.md"
    lines = path.read_text("utf-8").split("\n")
    start, end = _table(lines)
    wanted = readme_table(project)
    if changed := lines[start:end] != wanted:
        lines[start:end] = wanted
        path.write_text("\n".join(lines), "utf-8")
    return changed


def list_problems(project: Project) -> list[str]:
    """Return what the lists lack: each with the file, the line, and what to write."""
    listed, docs = chapters(project), project.relative(project.docs)
    problems = [
        f"{docs}/{x.file}:1: the front matter says no `{key}:`, which {table} shows"
        for x in listed
        for key, table in (("concept", "README's table"), ("question", "the home"))
        if not x.meta.get(key)
    ]
    metas = ((x, get_data(x.read_text("utf-8"))[1]) for x in project.site_pages)
    unlisted = [unlisted_problem(project, path, meta) for path, meta in metas]
    if told := [problem for problem in unlisted if problem]:
        return [*told, *problems]  # who leads to whom is not known yet
    wrong = itertools.chain(_next_problems(listed), _order_problems(listed))
    problems += [f"{docs}/{problem}" for problem in wrong]
    readme = project.root / "README.md"
    if not problems and readme.is_file():
        lines = readme.read_text("utf-8").split("\n")
        start, end = _table(lines)
        if lines[start:end] != readme_table(project):
            problems.append(f"README.md:{start + 1}: `make lists` writes this table")
    return problems


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: put the lists where a page asks for them."""
    project = project_of(config)
    if page.is_homepage:
        for problem in list_problems(project):
            log.warning("%s", problem)
    for sign, lines in ((TABLE, home_table), (ORDER, order)):
        if sign in markdown:
            markdown = markdown.replace(sign, "\n".join(lines(project)))
    return markdown


def _next_problems(listed: list[Chapter]) -> Iterator[str]:
    for chapter, following in itertools.pairwise(listed):
        links = list(_NEXT.finditer(chapter.text))
        place = links[0].start() if links else len(chapter.text)
        line = chapter.text.count("\n", 0, place) + 1
        wanted = f"Next: [{following.title}]({following.name})"
        leads = [link["file"] for link in links] == [following.name]
        if chapter.is_taught and not leads:
            yield f"{chapter.file}:{line}: the chapter needs one line `{wanted}`"
        if leads and not _calls(links[0]["said"], following.title):
            yield f"{chapter.file}:{line}: the link is called otherwise: {wanted}"


def _calls(text: str, title: str) -> bool:
    """Whether a link says the title, or its first words, in capitals or not."""
    said, all_words = (re.findall(r"\w+", x.lower()) for x in (text, title))
    return said == all_words[: len(said)]


def _order_problems(listed: list[Chapter]) -> Iterator[str]:
    before: set[str] = set()
    for chapter in listed:
        for name in chapter.meta.get("builds_on") or []:
            if name not in before:
                says = f"builds on {name}, which mkdocs.yml puts after it"
                yield f"{chapter.file}:1: {says}"
        before.add(chapter.name)


def _table(lines: list[str]) -> tuple[int, int]:
    """Return where README's table starts, and the first line after it."""
    if README_HEAD[0] not in lines:
        raise ValueError(f"README.md has no table {README_HEAD[0]!r}")
    start = lines.index(README_HEAD[0])
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    return start, start + len(list(rows))


def _row(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |".replace("  |", " |")
