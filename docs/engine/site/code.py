"""The package's code on a page: folded docstrings, links to the source.

A hook of MkDocs. The text of a block stays whole in the page: a docstring is one line
until its reader opens it, also without JavaScript; what is copied then is the whole
block by its button, and code that works by hand.
"""

import html
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page as SitePage

from engine.pages.blocks import PageError, squeeze
from engine.pages.reading import Page
from engine.site import project_of

_BLOCK = re.compile(
    r'<span class="filename">(?P<title>[^<]*)</span>'
    r"(?P<open><pre>.*?<code>)(?P<code>.*?)(?P<close></code></pre>)",
    re.DOTALL,
)
_HIGHLIGHT = '<div class="language-'
_OUTPUT = re.compile(rf'{_HIGHLIGHT}\w+ output highlight">')
_TAG = re.compile(r"<[^>]*>")
QUOTES = '"""'
# Names and blanks have the colour of the code around them.
_PLAIN = re.compile(r'<span class="[nw]">([^<]*)</span>')
# A docstring that goes on below its first line, as Pygments writes it.
_DOCSTRING = re.compile(
    rf'^(?P<first>.*<span class="sd">\w*{QUOTES}(?!.*{QUOTES}).*</span>)'
    rf"(?P<rest>(?:\n.*)*?\n.*{QUOTES}</span>)$",
    re.MULTILINE,
)


def on_page_content(html: str, page: SitePage, config: MkDocsConfig, **_: Any) -> str:
    """MkDocs: fold docstrings, and link each block of the package."""
    path = Path(config.docs_dir, page.file.src_uri)
    html = joined(unmarked(html))
    if 'class="filename"' not in html or path.suffix != ".md" or not path.is_file():
        return html
    try:
        return linked(html, Page(project_of(config), path))
    except PageError:
        return html  # which the engine tells


def unmarked(html: str) -> str:
    """Take away the marks that change nothing: a page is lighter by a fifth."""
    return _PLAIN.sub(r"\1", html)


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


def embedded(page: Page) -> dict[str, str]:
    """Return the file and lines of each block from the package, by its text."""
    found = {}
    for fence in page.fences:
        places = sorted(line.origin for line in fence.lines if line.strip())
        files = {place.file for place in places}
        if len(files) == 1 and fence.is_python and places[0].file.suffix == ".py":
            file = page.project.relative(places[0].file)
            lines = f"#L{places[0].line}-L{places[-1].line}"
            found[squeeze(fence.code)] = f"{file}{lines}"
    return found


def linked(page_html: str, page: Page) -> str:
    """Fold docstrings of embedded blocks, and let their titles lead to the source."""
    pieces = embedded(page)

    def block(match: re.Match[str]) -> str:
        piece = pieces.get(squeeze(html.unescape(_TAG.sub("", match["code"]))))
        if piece is None:
            return match[0]
        url = html.escape(f"{page.project.repo_url}/blob/HEAD/{piece}")
        title = f'<span class="filename"><a href="{url}">{match["title"]}</a></span>'
        return title + match["open"] + folded(match["code"]) + match["close"]

    return _BLOCK.sub(block, page_html)


def folded(code: str) -> str:
    """Fold all docstrings of highlighted Python to their first line.

    A box to tick needs no JavaScript. The quotes that end the first line are shown
    while the rest is not, so that what is selected by hand is Python.
    """

    def fold(match: re.Match[str]) -> str:
        count = match["rest"].count("\n")
        lines = "1 more line" if count == 1 else f"{count} more lines"
        return (
            f'{match["first"]}<span class="fold">'
            f'<span class="sd fold-end">{QUOTES}</span>'
            '<input type="checkbox" class="fold-box" autocomplete="off" '
            f'data-lines="{lines}" aria-label="Docstring: {lines}">'
            f'<span class="fold-rest">{match["rest"]}</span></span>'
        )

    return _DOCSTRING.sub(fold, code)
