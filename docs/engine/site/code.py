"""The package's code on a page: folded docstrings, links to the source and its tests.

A hook of MkDocs. The text of a block stays whole in the page: a docstring is one line
until its reader opens it, also without JavaScript; what is copied then is the whole
block by its button, and code that works by hand.
"""

import functools
import html
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page as SitePage

from engine.looking import names_at
from engine.pages.blocks import PageError, squeeze
from engine.pages.reading import Page
from engine.project import Project

_BLOCK = re.compile(
    r'<span class="filename">(?P<title>[^<]*)</span>'
    r"(?P<open><pre>.*?<code>)(?P<code>.*?)(?P<close></code></pre>)",
    re.DOTALL,
)
_HIGHLIGHT = '<div class="language-'
_OUTPUT = re.compile(rf'{_HIGHLIGHT}\w+ output highlight">')
_TAG = re.compile(r"<[^>]*>")
QUOTES = '"""'


@dataclass(frozen=True)
class Embedded:
    """A piece of the package on a page.

    Attributes:
        file: from the root of the project.
        first, last: its lines in the file.
        names: of the definitions at the top level that it is from.
    """

    file: str
    first: int
    last: int
    names: tuple[str, ...]


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: fold docstrings, and link each block of the package."""
    root = Path(config.config_file_path).resolve().parent
    path = Path(config.docs_dir, page.file.src_uri)
    html = joined(html)
    if 'class="filename"' not in html or path.suffix != ".md" or not path.is_file():
        return html
    project = Project(root)
    try:
        pieces = embedded(Page(project, path))
    except PageError:
        return html  # which the engine tells
    tests = functools.partial(covering, project)
    return linked(html, pieces, project.repo_url, tests)


def joined(html: str) -> str:
    """Mark the blocks whose output follows: the two stand together, as one."""
    for output in reversed([*_OUTPUT.finditer(html)]):
        start = html.rfind(_HIGHLIGHT, 0, output.start())
        between = html[start : output.start()]
        ends = between.count("<div") == between.count("</div>")
        if start >= 0 and ends and between.rstrip().endswith("</div>"):
            mark = start + len('<div class="')
            html = f"{html[:mark]}printing {html[mark:]}"
    return html


def embedded(page: Page) -> dict[str, Embedded]:
    """Return where each block from a file of the package is from, by its text."""
    found = {}
    for fence in page.fences:
        files = {line.origin.file for line in fence.lines if line.strip()}
        if len(files) != 1 or not fence.is_python or files == {page.path}:
            continue
        file = files.pop()
        if file.suffix != ".py":
            continue
        numbers = [line.origin.line for line in fence.lines if line.strip()]
        names = names_at(file.read_text("utf-8"), set(numbers))
        name = page.project.relative(file)
        piece = Embedded(name, min(numbers), max(numbers), tuple(names))
        found[squeeze(fence.code)] = piece
    return found


def linked(
    page_html: str,
    pieces: dict[str, Embedded],
    repository: str,
    tests: Callable[[Embedded], list[str]],
) -> str:
    """Fold the docstrings of embedded blocks, and let their titles lead to the source.

    Args:
        page_html: the page.
        pieces: where blocks are from, by their text.
        repository: its address.
        tests: gives the files that test a piece, from the root of the project.
    """

    def block(match: re.Match[str]) -> str:
        text = squeeze(html.unescape(_TAG.sub("", match["code"])))
        piece = pieces.get(text)
        if piece is None:
            return match[0]
        on_github = f"{repository}/blob/HEAD"
        lines = f"#L{piece.first}-L{piece.last}"
        source = _link(f"{on_github}/{piece.file}{lines}", match["title"], "")
        title = (
            f'<span class="filename">{source}{_tests(tests(piece), on_github)}</span>'
        )
        return title + match["open"] + folded(match["code"]) + match["close"]

    return _BLOCK.sub(block, page_html)


def _tests(files: list[str], on_github: str) -> str:
    """Return links to the tests: the first is called `tests`, others by their name."""
    links: list[str] = []
    for file in files:
        words = Path(file).stem.removeprefix(Path(files[0]).stem).strip("_")
        said = words.replace("_", " ") if links and words else "tests"
        links.append(_link(f"{on_github}/{file}", said, f"What tests it: {file}"))
    return f'<span class="filename-tests">{" ".join(links)}</span>' if links else ""


def _link(url: str, text: str, title: str) -> str:
    titled = f' title="{html.escape(title)}"' if title else ""
    return f'<a href="{html.escape(url)}"{titled}>{text}</a>'


def covering(project: Project, piece: Embedded) -> list[str]:
    """Return the files that test a piece of the package; the tests mirror its folders.

    Those of its module that name what it defines, or all where none does.
    """
    inside = Path(piece.file).relative_to(project.package)
    stem, folder = inside.stem, project.root / "tests" / inside.parent
    whole = re.compile(rf"test_(?:{inside.parent.name}_)?{stem}(?:_\w+)?")
    files = sorted(x for x in folder.glob("test_*.py") if whole.fullmatch(x.stem))
    files.sort(key=lambda x: not x.stem.endswith(f"_{stem}"))  # the shortest first
    names = re.compile(rf"\b(?:{'|'.join(piece.names)})\b" if piece.names else "")
    naming = [x for x in files if names.search(x.read_text("utf-8"))]
    return [project.relative(x) for x in naming or files]


# A docstring that goes on below its first line, as Pygments writes it.
_OPENS = re.compile(rf'.*<span class="sd">\w*{QUOTES}(?!.*{QUOTES}).*</span>$')
_CLOSES = re.compile(rf".*{QUOTES}</span>$")


def folded(code: str) -> str:
    """Fold all docstrings of highlighted Python to their first line."""
    done: list[str] = []
    lines = iter(code.split("\n"))
    for line in lines:
        if not _OPENS.match(line):
            done.append(line)
            continue
        rest = list(_until_closed(lines))
        done.append(line + _fold(rest) if rest else line)
    return "\n".join(done)


def _until_closed(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        yield line
        if _CLOSES.match(line):
            return


def _fold(rest: list[str]) -> str:
    """Return what hides the rest of a docstring; a box to tick needs no JavaScript.

    The quotes that end the first line are shown while the rest is not, so that what is
    selected by hand is Python.
    """
    count = len(rest)
    lines = "1 more line" if count == 1 else f"{count} more lines"
    return (
        f'<span class="fold"><span class="sd fold-end">{QUOTES}</span>'
        f'<input type="checkbox" class="fold-box" autocomplete="off" '
        f'data-lines="{lines}" aria-label="Docstring: {lines}">'
        '<span class="fold-rest">\n' + "\n".join(rest) + "</span></span>"
    )
