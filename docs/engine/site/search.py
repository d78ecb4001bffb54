"""What the search looks through: prose and questions, chapters first, and no listings.

Material's plugin writes the sections of all pages into one file. This hook takes code
and LaTeX out of it, and adds what a page says about itself: `question` and
`description` as the text under its title, `keywords` as words that readers type and
the page may not use. Such words of a section stand in `search.toml` beside this file.
A page's meta may have more
sections of it, as `sections`: terms of the glossary.

A page of the site fetches `search/search_index.json`, which says only how words are
split. The sections lie in `search/sections.json`; `docs/assets/js/search-worker.js`
fetches them when somebody searches.
"""

import json
import logging
import re
import tomllib
from html import escape, unescape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.search")

SETTINGS, SECTIONS = "search/search_index.json", "search/sections.json"
ASKED = Path(__file__).with_suffix(".toml")

_LISTING = re.compile(r"<pre>.*?</pre>", re.DOTALL)
# The file name above a listing, which stands alone between two paragraphs.
_FILE = re.compile(r"(?:^|(?<=>))\s*[\w/-]+\.py\s*(?=<|$)")
# In the API: errors, the list of sections that stand below, and the head of a source.
_LISTED = re.compile(
    r"<p>(?:Raises|Attributes|Classes|Functions|Methods|Modules):</p>\s*<ul>.*",
    re.DOTALL,
)
# And what a function returns, types, marks of code and lists; all but the first
# paragraph of the NumPy twin, which says what the torch module says, and of what
# chapters tell or only the command uses. Readers type names and ideas.
_RETURNED = re.compile(r"<p>(?:Returns|Yields):</p>\s*<ul>.*?</ul>", re.DOTALL)
_TYPES = re.compile(r"\s*\(<code>(?:(?!<p>).){1,200}?\)(?=\s*–)", re.DOTALL)
_CODE = re.compile(r"</?code>")
_OTHERS = "reference runs cli check tasks interop training data models generate "
_OTHERS += "checks files drawing pretrained"
_IN_SHORT = (
    *(f"api/tformer/{x}/" for x in _OTHERS.split()),
    *("results/", "speed/", "live/", "labs/"),  # figures, outputs, what is tried out
    *("adding/", "how-pages-are-tested/"),  # for contributors
)
_SOURCE = re.compile(r"Source code in(?=\s*(?:<|$))")
_LISTS = re.compile(r"</?(?:ul|ol|li)>")
_EMPTY = re.compile(r"<(\w+)>\s*</\1>")
_SPACE = re.compile(r"\s+")
_MATH = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)
# LaTeX as a reader would type it on one line; what is left of commands goes.
_SIGNS = {
    r"\\(?:operatorname|text|mathrm|mathbf|mathit)\*?\s*\{([^{}]*)\}": r"\1",
    r"\\sqrt\s*\{([^{}]*)\}": r"√\1",
    r"\\sqrt\s*(\w)": r"√\1",
    r"\\[td]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}": r"\1/\2",
    r"\\infty": "∞",
    r"\\(?:cdot|times)": "·",
    r"\\(?:top|!|,|;|quad|left|right|big|Big)(?![a-z])": "",
    r"\\([A-Za-z]+)": r"\1",
    r"[\\{}&]": "",
}

_about: dict[str, dict[str, Any]] = {}  # the front matter of each page, by its address


def on_page_context(context: Any, page: Page, **_: Any) -> Any:
    """Keep what a page says about itself."""
    _about[page.url] = dict(page.meta)
    return context


def on_post_build(config: MkDocsConfig) -> None:
    """Divide the plugin's file into settings, for every page, and sections."""
    site = Path(config.site_dir)
    index = json.loads((site / SETTINGS).read_text("utf-8"))
    sections = [mended(entry, _about) for entry in index["docs"]]
    sections += [x for meta in _about.values() for x in meta.get("sections", ())]
    asked = tomllib.loads(ASKED.read_text("utf-8"))["sections"]
    for entry in sections:
        if words := asked.pop(entry["location"], None):
            entry["keywords"] = words
    for place in asked if len(_about) > 1 else ():  # not where one page alone is built
        log.warning("%s: the site has no section %s", ASKED.name, place)
    for path, content in ((SECTIONS, sections), (SETTINGS, {**index, "docs": []})):
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        (site / path).write_text(text, "utf-8")


def mended(entry: dict[str, Any], about: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a section as the search shows it, by what pages say `about` themselves."""
    text, place = entry["text"], entry["location"]
    title = prose(entry["title"])
    if place.startswith(_IN_SHORT):
        text = "".join(text.partition("</p>")[:2])
    if place.startswith("api/"):
        text = _RETURNED.sub("", _LISTED.sub("", text))
        return {**entry, "title": title, "text": prose(_TYPES.sub("", text))}
    meta = about.get(place, {})  # of sections there is none: they have an anchor
    said = (meta.get("question"), meta.get("description"))
    lead = "".join(f"<p>{escape(x, quote=False)}</p>" for x in said if x)
    keywords = {"keywords": meta["keywords"]} if meta.get("keywords") else {}
    return {**entry, "title": title, "text": lead + prose(text), **keywords}


def prose(html: str) -> str:
    """Return a text without its listings, and with formulas in plain characters."""
    html = _FILE.sub(" ", _SOURCE.sub(" ", _LISTING.sub(" ", html)))
    html = _MATH.sub(lambda match: plain_math(match[1] or match[2]), html)
    while True:
        html, count = _EMPTY.subn(" ", html)
        if not count:
            html = _LISTS.sub(" ", _CODE.sub("", html))
            return _SPACE.sub(" ", html).strip()


def plain_math(latex: str) -> str:
    r"""Return a formula in plain characters: `\(\sqrt{d_k}\)` is √d_k."""
    text = unescape(latex)
    for sign, plain in _SIGNS.items():
        text = re.sub(sign, plain, text)
    return escape(_SPACE.sub(" ", text).strip(), quote=False)
