"""A page as it is written, with snippets in place, and as the site shows it."""

import functools
import re
import types
from pathlib import Path
from typing import Any, NamedTuple

import markdown  # type: ignore[import-untyped]
import yaml
from bs4 import BeautifulSoup, Tag
from pymdownx.snippets import SnippetMissingError  # type: ignore[import-untyped]

from engine.definitions import DefinitionExtension, DefinitionPreprocessor
from engine.pages import blocks
from engine.pages.blocks import TAB, Block, Fence, Line, Origin, PageError, number
from engine.pages.depth import Depth, find_depths
from engine.project import PACKAGE, Project

CHAPTERS = "chapters"  # the folder in docs/
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*\n\n*", re.DOTALL)


class Page:
    """A Markdown file, read once: `meta` is its front matter, `body` the rest of it."""

    def __init__(self, project: Project, path: Path) -> None:
        self.project = project
        self.path = path.resolve()
        self.text = self.path.read_text("utf-8")
        body, self.meta = front_matter(self.text)
        above = self.text[: len(self.text) - len(body)].count("\n")
        self.body = number(self.path, body, first=above + 1)
        self.on_site = self.path.is_relative_to(project.docs)

    @functools.cached_property
    def lines(self) -> list[Line]:
        """The page below its front matter, with snippets in their places."""
        return expand(self.project, self.body) if self.on_site else self.body

    @functools.cached_property
    def fences(self) -> list[Fence]:
        """All fenced blocks, of any language."""
        return blocks.find_fences(self.lines)

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The Python blocks."""
        return blocks.find_blocks(self.lines, self.fences)

    @functools.cached_property
    def measures_time(self) -> bool:
        """Whether its code looks at a clock."""
        return any("perf_counter" in block.fence.code for block in self.blocks)

    @property
    def uses_torch(self) -> bool:
        """Whether its code may import torch, itself or through the package."""
        mentioned = any(name in self.text for name in ("torch", PACKAGE))
        return mentioned and "```" in self.text

    @property
    def name(self) -> str:
        """How files made from the page are called: `attention`."""
        return self.path.stem

    @property
    def title(self) -> str:
        """The heading of the page, without its attributes."""
        headings = (line for line in self.body if line.startswith("# "))
        return re.sub(r"\s*\{[^}]*\}\s*$", "", next(headings, self.name)).strip("# ")

    @property
    def file(self) -> str:
        """The path in docs/, as MkDocs and the navigation call it."""
        return self.path.relative_to(self.project.docs).as_posix()

    @property
    def url(self) -> str:
        """The address on the site."""
        return self.project.page_url(self.path)

    @property
    def is_chapter(self) -> bool:
        """Whether it has the parts of a chapter: in its folder all but `kind: page`."""
        in_chapters = self.path.parent == self.project.docs / CHAPTERS
        return in_chapters and self.meta.get("kind") != "page"

    @property
    def top(self) -> Origin:
        """The place of what the page lacks as a whole."""
        return Origin(self.path, 1)

    def meta_line(self, key: str) -> Origin:
        """The place of a key in the front matter, or of the front matter without it."""
        lines = self.text.split("\n") if self.meta else []
        named = (n for n, x in enumerate(lines, 1) if x.startswith(f"{key}:"))
        return Origin(self.path, next(named, 1))

    @functools.cached_property
    def prose(self) -> list[tuple[int, Line]]:
        """The lines outside of all fences, each with its index."""
        inside = {n for f in self.fences for n in range(f.start, f.end + 1)}
        return [(n, line) for n, line in enumerate(self.lines) if n not in inside]

    @functools.cached_property
    def depths(self) -> list[Depth]:
        """The folds below its core, in order."""
        return find_depths(self.prose) if self.on_site else []

    @functools.cached_property
    def depth_marks(self) -> dict[int, str]:
        """The lines that make a fold of depth: its title at the first, else nothing."""
        marks = {n: "" for x in self.depths for n in (*range(x.start, x.inside), x.end)}
        return marks | {x.start: x.title for x in self.depths}


def front_matter(text: str) -> tuple[str, dict[str, Any]]:
    """Return a page below its front matter, and what that says; as MkDocs reads it."""
    found = _FRONT_MATTER.match(text)
    try:
        said = yaml.safe_load(found[1]) if found else None
    except yaml.YAMLError:
        said = None
    if found is None or not isinstance(said, dict):
        return text, {}
    return text[found.end() :], said


def expand(project: Project, lines: list[Line]) -> list[Line]:
    """Put the snippets in their places, as the site does."""
    options = project.extensions.get("engine.definitions")
    if not options:
        return lines
    settings = DefinitionExtension(**options).getConfigs()
    preprocessor = _Snippets(settings, types.SimpleNamespace(tab_length=TAB))
    expanded = []
    for line in lines:
        pieces: list[str] = [line]
        if "8<-" in line:
            try:
                pieces = preprocessor.run([line])
            except SnippetMissingError as error:
                raise PageError(line.origin, str(error)) from None
        for piece in pieces:
            origin = piece.origin if isinstance(piece, Line) else line.origin
            expanded.append(Line(piece.expandtabs(TAB), origin))
    return expanded


class _Snippets(DefinitionPreprocessor):
    """The preprocessor of the site, whose lines keep their origin."""

    def read_lines(self, path: str) -> list[Line]:  # type: ignore[override]
        """Read a file whole."""
        lines = super().read_lines(path)
        return [Line(x, Origin(Path(path), n)) for n, x in enumerate(lines, 1)]

    def dedent(self, lines: list[Line]) -> list[Line]:
        """Take away the indentation that all lines share."""
        if not lines:
            return []
        dedented = super().dedent(lines)
        return [Line(x, y.origin) for x, y in zip(dedented, lines, strict=True)]


_BUILTIN = ["toc", "tables", "fenced_code"]  # MkDocs adds these


class Rendered(NamedTuple):
    """What the HTML of a page holds."""

    code: list[tuple[str, str]]  # the language it is highlighted in, and the text
    images: list[dict[str, str]]


def render(page: Page) -> Rendered:
    """Render a page with the extensions of mkdocs.yml, and read the HTML."""
    names, options = _extensions(page.project)
    if not page.on_site:
        names = [name for name in names if name != "engine.definitions"]
    converter = markdown.Markdown(extensions=names, extension_configs=options)
    html = BeautifulSoup(converter.convert("\n".join(page.body)), "html.parser")
    return Rendered(
        [
            (_language(pre), pre.get_text())
            for pre in html("pre")
            if not pre.find_parent(class_="linenodiv")
        ],
        [{name: str(x) for name, x in image.attrs.items()} for image in html("img")],
    )


def _language(pre: Tag) -> str:
    """Return what a block is highlighted as: a class says so, in it or around it."""
    for element in [*pre("code", recursive=False), pre, *pre.parents]:
        for name in element.get_attribute_list("class"):
            if name and name.startswith("language-"):
                return name.removeprefix("language-").lower()
    return str(pre.get_attribute_list("class")[0] or "").lower()


@functools.cache
def _extensions(project: Project) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return names and options of the extensions, as MkDocs hands them to Markdown."""
    options = dict(project.extensions)
    names = [*(name for name in _BUILTIN if name not in options), *options]
    # Without these, what a block is highlighted as cannot be read from the HTML.
    highlight = {"pygments_lang_class": True, "use_pygments": True}
    options["pymdownx.highlight"] = options.get("pymdownx.highlight", {}) | highlight
    return names, options
