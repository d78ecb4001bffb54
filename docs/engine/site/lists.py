"""The lists of chapters: README's table, the home page's, and "The order".

They are made from the navigation in mkdocs.yml and the front matter of each chapter.
MkDocs puts those of the site in (this file is a hook); `python -m engine lists` writes
README's, which GitHub shows as it is, and how a chapter calls the next one;
`list_problems` says where these are old.
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

log = logging.getLogger("mkdocs.hooks.lists")

README_HEAD = ["| Concept | Chapter | Module |", "|---|---|---|"]
HOME_HEAD = ["| Chapter | The question it answers | Module |", "|---|---|---|"]
# What a page says where a list goes.
TABLE, ORDER = "<!-- chapters: table -->", "<!-- chapters: order -->"

# The twin and the fast paths are taught beside what they equal: not listed again.
_BESIDE = ("fast", "reference")
_NEXT = re.compile(r"^Next: \[([^]]+)\]\(([^)]+)\)")


@dataclass(frozen=True)
class Chapter:
    """A page below chapters/, as the lists show it.

    Attributes:
        file: its path in docs/.
        title: its heading.
        meta: its front matter, with `concept` and `question`.
        text: all of the file.
    """

    file: str
    title: str
    meta: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        """How other chapters call it: `attention.md`."""
        return Path(self.file).name

    @property
    def is_taught(self) -> bool:
        """Whether it teaches a part; the first page only says how to read."""
        return bool(self.meta.get("goals"))

    def modules(self, package: str) -> dict[str, str]:
        """Return the modules that it teaches by their dotted names, and their files."""
        named = {
            file.removesuffix(".py").replace("/", "."): file
            for file in self.meta.get("modules") or []
        }
        beside = tuple(f"{package}.{folder}." for folder in _BESIDE)
        return {
            name.removeprefix(f"{package}."): file
            for name, file in named.items()
            if not name.startswith(beside)
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


def home_table(project: Project) -> list[str]:
    """Return the table of chapters and the questions that they answer."""
    rows = []
    for chapter in chapters(project):
        named = (
            f"[`{name}`][{project.package}.{name}]"
            for name in chapter.modules(project.package)
        )
        cells = [f"[{chapter.title}]({chapter.file})", chapter.meta.get("question")]
        rows.append(_row(*cells, ", ".join(named)))
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
    old = path.read_text("utf-8")
    lines = old.split("\n")
    start, end = _table(lines)
    new = "\n".join([*lines[:start], *readme_table(project), *lines[end:]])
    if new != old:
        path.write_text(new, "utf-8")
    return new != old


def write_links(project: Project) -> list[str]:
    """Let each chapter call the next one by its title; return the files written."""
    written = []
    for chapter, following in itertools.pairwise(chapters(project)):
        lines = chapter.text.split("\n")
        for n, line in enumerate(lines):
            found = _NEXT.match(line)
            leads = found and found.group(2) == following.name
            if found and leads and not _calls(found.group(1), following.title):
                start, end = found.span(1)
                lines[n] = f"{line[:start]}{following.title}{line[end:]}"
        if "\n".join(lines) != chapter.text:
            path = project.docs / chapter.file
            path.write_text("\n".join(lines), "utf-8")
            written.append(project.relative(path))
    return written


def list_problems(project: Project) -> list[str]:
    """Return what the lists lack: each with the file, the line, and what to write."""
    listed, problems = chapters(project), []
    for chapter in listed:
        place = f"{project.relative(project.docs)}/{chapter.file}"
        problems += [
            f"{place}:1: the front matter says no `{key}:`, which {table} shows"
            for key, table in (("concept", "README's table"), ("question", "the home"))
            if not chapter.meta.get(key)
        ]
    if unlisted := _unlisted_problems(project):  # who leads to whom is not known yet
        return [*unlisted, *problems]
    problems += [*_next_problems(project, listed), *_order_problems(project, listed)]
    if not problems and (project.root / "README.md").is_file():
        problems += _readme_problems(project)
    return problems


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: put the lists where a page asks for them."""
    project = Project(Path(config.config_file_path).resolve().parent)
    if page.is_homepage:
        for problem in list_problems(project):
            log.warning("%s", problem)
    for sign, lines in ((TABLE, home_table), (ORDER, order)):
        if sign in markdown:
            markdown = markdown.replace(sign, "\n".join(lines(project)))
    return markdown


def _next_problems(project: Project, listed: list[Chapter]) -> Iterator[str]:
    for chapter, following in itertools.pairwise(listed):
        lines = chapter.text.split("\n")
        places = {n: _NEXT.match(line) for n, line in enumerate(lines, 1)}
        links = {n: found for n, found in places.items() if found}
        place = f"{project.relative(project.docs)}/{chapter.file}"
        line = next(iter(links), len(lines))
        wanted = f"Next: [{following.title}]({following.name})"
        targets = [found.group(2) for found in links.values()]
        if chapter.is_taught and targets != [following.name]:
            yield f"{place}:{line}: the chapter needs one line `{wanted}`"
        says = [_calls(found.group(1), following.title) for found in links.values()]
        if targets == [following.name] and says != [True]:
            yield f"{place}:{line}: `make lists` writes here: {wanted}"


def _calls(text: str, title: str) -> bool:
    """Whether a link says the title, or its first words, in capitals or not."""
    said, all_words = (re.findall(r"\w+", x.lower()) for x in (text, title))
    return said == all_words[: len(said)]


def _unlisted_problems(project: Project) -> list[str]:
    found = []
    for path in project.site_pages:
        _, meta = get_data(path.read_text("utf-8"))
        found.append(unlisted_problem(project, path, meta))
    return [problem for problem in found if problem]


def _order_problems(project: Project, listed: list[Chapter]) -> Iterator[str]:
    before: set[str] = set()
    for chapter in listed:
        for name in chapter.meta.get("builds_on") or []:
            if name not in before:
                place = f"{project.relative(project.docs)}/{chapter.file}"
                yield f"{place}:1: builds on {name}, which mkdocs.yml puts after it"
        before.add(chapter.name)


def _readme_problems(project: Project) -> Iterator[str]:
    lines = (project.root / "README.md").read_text("utf-8").split("\n")
    start, end = _table(lines)
    wanted = readme_table(project)
    for n, row in enumerate(wanted, start):
        if n >= end or lines[n] != row:
            yield f"README.md:{n + 1}: `make lists` writes here: {row}"
            return
    if end - start > len(wanted):
        n = start + len(wanted)
        yield f"README.md:{n + 1}: `make lists` removes: {lines[n]}"


def _table(lines: list[str]) -> tuple[int, int]:
    """Return where README's table starts, and the first line after it."""
    if README_HEAD[0] not in lines:
        raise ValueError(f"README.md has no table {README_HEAD[0]!r}")
    start = end = lines.index(README_HEAD[0])
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return start, end


def _row(*cells: Any) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |".replace("  |", " |")
