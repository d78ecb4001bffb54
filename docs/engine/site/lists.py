"""The lists of chapters: README's table, the home page's, and "The order".

They are made from the navigation in mkdocs.yml and the front matter of each chapter.
MkDocs puts those of the site in (this file is a hook); `python -m engine lists` writes
README's, which GitHub shows as it is; `list_problems` says where they are old.
"""

import itertools
import logging
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.pages.blocks import Origin
from engine.pages.listing import files_of, unlisted_problem
from engine.pages.reading import CHAPTERS, Page
from engine.project import Project
from engine.site import project_of

if TYPE_CHECKING:  # the command line writes README without MkDocs
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page as SitePage

log = logging.getLogger("mkdocs.hooks.lists")

README_HEAD = ["| Concept | Chapter | Module |", "|---|---|---|"]
HOME_HEAD = ["| Chapter | The question it answers | Module |", "|---|---|---|"]
# What a page says where a list goes.
TABLE, ORDER = "<!-- chapters: table -->", "<!-- chapters: order -->"

# The twin is taught beside what it equals: not listed again.
_BESIDE = "reference/"
_NEXT = re.compile(r"^Next: \[(?P<said>[^]]+)\]\((?P<file>[^)]+)\)", re.MULTILINE)
_MARKUP = re.compile(r"[`*]|\\[()]")


def chapters(project: Project) -> list[Page]:
    """Return the chapters in the order of the navigation."""
    files = files_of(project.config.get("nav"))
    paths = (project.docs / x for x in files if x.startswith(f"{CHAPTERS}/"))
    return [Page(project, path) for path in paths if path.is_file()]


def plain(text: str) -> str:
    """Drop the marks of Markdown."""
    return _MARKUP.sub("", text)


def home_table(project: Project) -> list[str]:
    """Return the table of chapters and the questions that they answer."""
    rows = []
    for page in chapters(project):
        named = ", ".join(f"[`{x}`][{project.package}.{x}]" for x in _modules(page))
        rows.append((f"[{page.title}]({page.file})", page.meta.get("question"), named))
    return [*HOME_HEAD, *map(_row, rows)]


def order(project: Project) -> list[str]:
    """Return the numbered list of the chapters that teach a part."""
    taught = filter(_is_taught, chapters(project))
    return [
        f"{number}. [{page.title}]({page.path.name}): {page.meta.get('question')}"
        for number, page in enumerate(taught, 1)
    ]


def readme_table(project: Project) -> list[str]:
    """Return README's table of concepts."""
    rows = []
    for page in chapters(project):
        named = ", ".join(f"[`{name}`]({x})" for name, x in _modules(page).items())
        link = f"[{page.title}]({project.relative(page.path)})"
        rows.append((page.meta.get("concept"), link, named))
    return [*README_HEAD, *map(_row, rows)]


def _is_taught(page: Page) -> bool:
    """Whether a chapter teaches a part; the first page only says how to read."""
    return bool(page.meta.get("goals"))


def _modules(page: Page) -> dict[str, str]:
    """Return the files that a chapter teaches, by the dotted names of the modules."""
    package = f"{page.project.package}/"
    files = {file.removeprefix(package): file for file in page.meta.get("modules", [])}
    return {
        inside.removesuffix(".py").replace("/", "."): file
        for inside, file in files.items()
        if not inside.startswith(_BESIDE)
    }


def write_readme(project: Project) -> bool:
    """Write README's table anew; return whether that changed it."""
    now, wanted = _readme(project)
    if now != wanted:
        (project.root / "README.md").write_text(wanted, "utf-8")
    return now != wanted


def list_problems(project: Project) -> list[str]:
    """Return what the lists lack: each with the file, the line, and what to write."""
    listed = chapters(project)
    problems = [
        f"{page.top}: the front matter says no `{key}:`, which {table} shows"
        for page in listed
        for key, table in (("concept", "README's table"), ("question", "the home"))
        if not page.meta.get(key)
    ]
    pages = (Page(project, path) for path in project.site_pages)
    if unlisted := [*filter(None, map(unlisted_problem, pages))]:
        return unlisted  # who leads to whom is not known yet
    problems += [*_next_problems(listed), *_order_problems(listed)]
    if not problems and (project.root / "README.md").is_file():
        now, wanted = _readme(project)
        problems += ["README.md: `make lists` writes its table"] * (now != wanted)
    return [project.tidy(problem) for problem in problems]


def on_page_markdown(
    markdown: str, page: "SitePage", config: "MkDocsConfig", **_: Any
) -> str:
    """MkDocs: put the lists where a page asks for them."""
    project = project_of(config)
    if page.is_homepage:
        for problem in list_problems(project):
            log.warning("%s", problem)
    for sign, lines in ((TABLE, home_table), (ORDER, order)):
        if sign in markdown:
            markdown = markdown.replace(sign, "\n".join(lines(project)))
    return markdown


def _next_problems(listed: list[Page]) -> Iterator[str]:
    for page, following in itertools.pairwise(listed):
        links = list(_NEXT.finditer(page.text))
        place = links[0].start() if links else len(page.text)
        where = Origin(page.path, page.text.count("\n", 0, place) + 1)
        wanted = f"Next: [{following.title}]({following.path.name})"
        leads = [link["file"] for link in links] == [following.path.name]
        if _is_taught(page) and not leads:
            yield f"{where}: the chapter needs one line `{wanted}`"
        elif leads and not following.title.lower().startswith(links[0]["said"].lower()):
            yield f"{where}: the link is called otherwise: {wanted}"


def _order_problems(listed: list[Page]) -> Iterator[str]:
    before: set[str] = set()
    for page in listed:
        for name in page.meta.get("builds_on") or []:
            if name not in before:
                says = f"builds on {name}, which mkdocs.yml puts after it"
                yield f"{page.top}: {says}"
        before.add(page.path.name)


def _readme(project: Project) -> tuple[str, str]:
    """Return README as it is, and with the table that it should have."""
    text = (project.root / "README.md").read_text("utf-8")
    above, head, below = text.partition(README_HEAD[0])
    if not head:
        raise ValueError(f"README.md has no table {README_HEAD[0]!r}")
    rest = itertools.dropwhile(lambda x: x.startswith("|"), below.split("\n")[1:])
    return text, above + "\n".join([*readme_table(project), *rest])


def _row(cells: tuple[Any, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |".replace("  |", " |")
