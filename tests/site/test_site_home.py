"""The home answers on its first screen, and a link says what it leads to."""

import re
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browsers import violations
from engine.site.cards import telling
from navigation import CHAPTERS, front_matter, url
from test_site_browser import opened
from test_site_machines import meta

SCREENS = {"laptop": (1366, 650), "phone": (390, 664), "small phone": (360, 640)}
BOX = "all => all.map((x) => x.getBoundingClientRect()).map((x) => [x.top, x.bottom])"


@pytest.mark.by_day(1)
@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_typed_is_answered_without_scrolling(
    browser: Browser, home: str, screen: str
) -> None:
    """Before the model is there, for a date of its training, and where it is unsure."""
    width, height = SCREENS[screen]
    with opened(browser, home) as (tab, wrong):
        tab.set_viewport_size({"width": width, "height": height})
        tab.reload(wait_until="networkidle")

        def seen(selector: str) -> bool:
            boxes = tab.locator(selector).evaluate_all(BOX)
            return bool(boxes) and all(0 <= a < b <= height for a, b in boxes)

        assert seen(".home-top h1, .home-actions a, .entry-input")
        assert seen("svg.writing .step text")
        for text, unlike in (("22.11.2026", False), ("22 November 26", True)):
            tab.locator(".entry-input").fill(text)
            tab.keyboard.press("Enter")
            tab.get_by_text("11 of 11 tokens").wait_for()
            told = tab.locator(".entry-note:not(.bet-note)")
            assert told.is_visible() == unlike
            shown = ".entry-input, .stage-source bdi, .stage-written .stage-token"
            assert seen(shown), text
            assert tab.evaluate("scrollY") == 0
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert not wrong, "\n".join(wrong)


def test_a_shared_link_says_what_people_look_for(site: Path) -> None:
    """Home has the book's title, a chapter its concept too; each has a card."""
    cards, titles = set(), {}
    for page in ["", "live/", *map(url, CHAPTERS)]:
        html = (site / page / "index.html").read_text("utf-8")
        said = meta(html)
        titles[page] = said["og:title"]
        assert said["og:title"] == said["twitter:title"]
        (tab,) = re.findall(r"<title>(.*?)</title>", html.partition("<body")[0])
        assert unescape(tab).startswith(said["og:title"])
        cards.add(said["og:image"])
    assert titles[""] == "The Transformer, executable"
    assert len(cards) == len(titles)
    for word, name in (
        ("latent attention", "small-caches"),
        ("linear attention", "linear-attention"),
        ("int8", "smaller-numbers"),
    ):
        assert word in titles[f"chapters/{name}/"].lower()
    for chapter in CHAPTERS:
        concept = front_matter(chapter)["concept"]
        assert telling("Nothing", concept).endswith(concept)


def test_a_checklist_is_ticked_by_its_words_and_shows_in_the_navigation(
    browser: Browser, home: str
) -> None:
    with opened(browser, home, "chapters/masks/") as (tab, wrong):
        item = tab.locator(".task-list-item").first
        item.scroll_into_view_if_needed()
        box = item.bounding_box()
        assert box
        item.click(position={"x": 60, "y": box["height"] / 2})
        assert item.locator("input").is_checked()
        count = tab.locator(".task-list-item input").count()
        mark = tab.locator(".md-sidebar--primary .ticked").first
        assert mark.text_content() == f"1/{count}"
        tab.goto(home)
        assert tab.locator(".chapters .ticked").all_text_contents() == [f"1/{count}"]
        tab.goto(f"{home}chapters/masks/")
        assert tab.locator(".task-list-item input").first.is_checked()
        again = tab.locator(".task-list-item").first
        again.scroll_into_view_if_needed()
        again.click(position={"x": 60, "y": box["height"] / 2})
        assert not tab.locator(".ticked").count()
        assert not wrong, "\n".join(wrong)


def test_without_scripts_nothing_is_cut(browser: Browser, home: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(home)
    drawn = tab.locator(".architecture a.output text").first
    assert drawn.text_content() == "Linear + softmax"
    assert not tab.locator("svg abbr").count()
    tab.goto(f"{home}404.html")
    key = tab.locator("kbd").bounding_box()
    assert key
    assert key["height"] >= 16
    context.close()


@pytest.mark.nightly
def test_what_is_printed_has_its_fonts_and_fills_its_pages(
    browser: Browser, home: str
) -> None:
    with opened(browser, home, "chapters/heads/") as (tab, wrong):
        tab.pdf()
        fonts = "[...document.fonts].filter((x) => x.status === 'loaded')"
        loaded = set(tab.evaluate(f"{fonts}.map((x) => x.family)"))
        assert {f"KaTeX_Size{n}" for n in (1, 2, 3, 4)} <= loaded
        tab.emulate_media(media="print")
        style = "x => getComputedStyle(x).breakInside"
        assert tab.locator(".highlight").first.evaluate(style) == "auto"
        moving = "[...document.querySelectorAll('*')].filter((x) => "
        moving += "getComputedStyle(x).animationName !== 'none').length"
        assert tab.evaluate(moving) == 0
        assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("width", [390, 1366])
def test_code_in_open_folds_is_reached_by_keyboard(
    browser: Browser, home: str, width: int
) -> None:
    with opened(browser, home, "chapters/rotary/") as (tab, _):
        tab.set_viewport_size({"width": width, "height": 664})
        tab.reload(wait_until="networkidle")
        tab.evaluate("""() => { for (const fold of
          document.querySelectorAll("article details")) fold.open = true }""")
        tab.wait_for_timeout(300)
        assert not violations(tab, runOnly=["scrollable-region-focusable"])
