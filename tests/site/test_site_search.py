"""The search: what readers type, and the page that answers it first."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from config_words import listed
from engine.site.search import SECTIONS, SETTINGS, mended, plain_math
from navigation import PAGES
from test_site_browser import opened

# What is typed, and the chapters of which one has to come first.
QUERIES = {
    "why sqrt": "attention",
    "causal": "masks",
    "layernorm before or after": "residuals",
    "nan": "masks",
    "tied weights": "transformer",
    "beam": "decoding",
    "beams": "decoding",
    "mask true means": "masks",
    "kv cache": "kv-cache",
    "rope": "positions rope rotary",
    "why mask": "masks",
    "padding": "batches masks",
    "label smoothing": "loss",
    "teacher forcing": "teacher-forcing",
    "weight decay": "optimizer",
    "positio": "positions",  # while it is typed
    "atention": "attention",  # a slip
}
TITLES = ".md-search-result__item > a:first-child"


@pytest.fixture(scope="module")
def tab(browser: Browser, home: str) -> Iterator[tuple[Page, list[str], list[str]]]:
    """The home page, its complaints, and what it has asked for."""
    with opened(browser, home) as (tab, wrong):
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.reload(wait_until="networkidle")
        yield tab, wrong, asked


def test_a_search_comes_when_somebody_searches(
    tab: tuple[Page, list[str], list[str]],
) -> None:
    page, _, asked = tab
    assert not [url for url in asked if "sections.json" in url or "workers" in url]
    page.get_by_role("textbox", name="Search").click()
    with page.expect_response(re.compile("sections.json")):
        page.keyboard.type("softmax")


@pytest.mark.by_day(6)
@pytest.mark.parametrize("query", QUERIES)
def test_the_page_that_answers_comes_first(
    tab: tuple[Page, list[str], list[str]], query: str
) -> None:
    page, wrong, _ = tab
    field = page.get_by_role("textbox", name="Search")
    first = page.locator(TITLES).first
    field.fill("")
    page.keyboard.press("Shift")  # Material listens to keys
    first.wait_for(state="detached")
    field.fill(query)
    page.keyboard.press("Shift")
    first.wait_for()
    link = first.get_attribute("href") or ""
    chapter = link.partition("/chapters/")[2].partition("/")[0]
    assert chapter in QUERIES[query].split(), f"{query!r} leads to {link}"
    assert page.locator(".md-search-result__list pre").count() == 0
    assert not wrong, "\n".join(wrong)


def _sections(site: Path) -> list[dict[str, Any]]:
    return list(json.loads((site / SECTIONS).read_text("utf-8")))


def test_no_code_is_searched(site: Path) -> None:
    sections = _sections(site)
    assert json.loads((site / SETTINGS).read_text("utf-8"))["docs"] == []
    assert len(sections) > 500
    for entry in sections:
        text = entry["title"] + entry["text"]
        assert not re.search(r"<pre|\\\(|\\frac|Source code in", text), entry
    # Fetched when somebody types, and not before.
    assert len(gzip.compress((site / SECTIONS).read_bytes())) < 1_400 * len(PAGES)


def test_every_word_of_a_config_is_found(site: Path) -> None:
    """In the text that is searched; that it stands in a table is tested elsewhere."""
    text = " ".join(entry["text"] for entry in _sections(site))
    assert not [word for word in listed() if not re.search(rf"\b{word}\b", text)]


def test_of_the_api_what_readers_type() -> None:
    """Names and what they are for: no types, nothing returned; of the twin one line."""
    html = (
        "<p>Turn x.</p> <p>More.</p> <p>Parameters:</p> <ul> <li> <code>x</code>\n"
        " (<code>int | None</code>, default:\n <code>(0, 1)</code>\n )\n – "
        "<p>what (see <code>y</code>).</p> </li> </ul> <p>Returns:</p> <ul> <li> "
        "<code>int</code> – <p>it.</p> </li> </ul> Source code in <code>a/b.py</code>"
    )
    for place, text in (
        (
            "api/tformer/nn/a/",
            "<p>Turn x.</p> <p>More.</p> <p>Parameters:</p> x – <p>what (see y).</p>",
        ),
        ("api/tformer/reference/a/", "<p>Turn x.</p>"),
    ):
        entry = {"location": place, "title": "a", "text": html}
        assert mended(entry, {})["text"] == text
    kept = mended({"location": "chapters/a/", "title": "a", "text": html}, {})["text"]
    assert "int – <p>it.</p>" in kept


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\operatorname{softmax}(x)", "softmax(x)"),
        (r"\frac{Q K^\top}{\sqrt{d_k}}", "Q K^/√d_k"),
        (r"-\infty &lt; \alpha", "-∞ &lt; alpha"),
    ],
)
def test_formulas_in_plain_characters(latex: str, plain: str) -> None:
    assert plain_math(latex) == plain


def test_a_page_is_found_by_what_it_says_about_itself() -> None:
    about = {"x/": {"question": "Why <x>?", "keywords": ["rope"], "description": "D."}}
    page = mended({"location": "x/", "title": "X", "text": ""}, about)
    assert page["text"] == "<p>Why &lt;x&gt;?</p><p>D.</p>"
    assert page["keywords"] == ["rope"]
    section = mended({"location": "x/#a", "title": "A", "text": "<p>a</p>"}, about)
    assert section == {"location": "x/#a", "title": "A", "text": "<p>a</p>"}
