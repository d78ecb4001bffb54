"""Formulas are set when the site is built, and read without JavaScript.

MkDocs builds all pages from Markdown first, then puts each into the template. Between
the two, KaTeX sets the formulas of all pages in one call.
"""

import hashlib
import json
import logging
import re
from html import unescape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

from engine.node import node
from engine.project import PACKAGES

log = logging.getLogger("mkdocs.hooks.formulas")

Formula = tuple[str, bool]  # its LaTeX, and whether it stands in a line of its own

_SCRIPT = Path(__file__).parents[2] / "npm" / "formulas.mjs"
_FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">'
    r"\s*\\(?:\((?P<inline>.*?)\\\)|\[(?P<display>.*?)\\\])\s*</(?P=tag)>",
    re.DOTALL,
)
_TAG = re.compile(r"(<[^>]+>)")
_DOLLARS = re.compile(r"\$\$(?P<display>[^$]+)\$\$|\$(?P<inline>[^$\s][^$]*)\$")

_set: dict[Formula, str] = {}  # of this build


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Note the formulas of a page."""
    if page.file.src_uri.endswith(".ipynb"):
        html = with_marks(html)
    _set.update(dict.fromkeys(formulas_in(html), ""))
    return html


def on_env(env: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Set the formulas of all pages."""
    _set.update(set_formulas(list(_set)))
    digest = hashlib.sha256("".join(_set.values()).encode())
    config.extra["formulas"] = digest.hexdigest()[:8]
    return env


def on_page_context(context: Any, page: Page, **_: Any) -> Any:
    """Put them in; the search has seen the page before, with LaTeX."""
    page.content, wrong = with_formulas(page.content or "", _set)
    for latex in wrong:
        log.warning("%s: KaTeX cannot set %s", page.file.src_uri, latex)
    return context


def formulas_in(html: str) -> list[Formula]:
    """Return the formulas that arithmatex has marked in a page."""
    return [_formula(match) for match in _FORMULA.finditer(html)]


def set_formulas(formulas: list[Formula]) -> dict[Formula, str]:
    """Return the HTML of each formula, as KaTeX sets it."""
    made = json.loads(node(_SCRIPT, PACKAGES, text=json.dumps(formulas)))
    return dict(zip(formulas, made, strict=True))


def with_formulas(html: str, found: dict[Formula, str]) -> tuple[str, list[str]]:
    """Return a page with its formulas set, and those that KaTeX refuses."""
    refused = [x for x in formulas_in(html) if "katex-error" in found[x]]

    def put(match: re.Match[str]) -> str:
        formula = _formula(match)
        made = found[formula]
        return f'<div class="arithmatex">{made}</div>' if formula[1] else made

    return _FORMULA.sub(put, html), [latex for latex, _ in refused]


def with_marks(html: str) -> str:
    """Mark the formulas in a notebook's text as arithmatex marks those of a page."""
    parts, inside, code = _TAG.split(html), 0, 0
    for n, part in enumerate(parts):
        if part.startswith("<div"):
            inside += 1 if inside else "jp-RenderedMarkdown" in part
        elif part == "</div>":
            inside -= bool(inside)
        elif re.match(r"</?(?:code|pre)\b", part):
            code += -1 if part.startswith("</") else 1
        elif inside and not code and not part.startswith("<"):
            parts[n] = _DOLLARS.sub(_mark, part)
    return "".join(parts)


def _mark(match: re.Match[str]) -> str:
    if match["display"]:
        return rf'<div class="arithmatex">\[{match["display"]}\]</div>'
    return rf'<span class="arithmatex">\({match["inline"]}\)</span>'


def _formula(match: re.Match[str]) -> Formula:
    display = match["display"] is not None
    return unescape(match["display" if display else "inline"]).strip(), display
