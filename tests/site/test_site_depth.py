"""The core of a chapter and its folds: switch, anchors, keyboard, paper, minutes."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from engine.pages.depth import minutes_of
from engine.pages.reading import Page as Source
from navigation import CHAPTERS, PROJECT, url
from test_site_browser import DESK, PHONE, opened

CHAPTER, OTHER = url("chapters/attention.md"), url("chapters/masks.md")
FOLDS = "article details.depth:not(.drawing)"
TOP = "id => document.getElementById(id).getBoundingClientRect().top"
SIZES = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])


def counts(tab: Page) -> tuple[int, int, int]:
    """Count folds that are open, that are shut, and opened code of pictures."""
    is_open = tab.locator(f"{FOLDS}[open]").count()
    drawing = tab.locator("article details.drawing[open]").count()
    return is_open, tab.locator(FOLDS).count() - is_open, drawing


def test_the_switch_opens_all_and_is_remembered(browser: Browser, home: str) -> None:
    """By keyboard; on the next page too; and back to the core."""
    with opened(browser, home, CHAPTER) as (tab, wrong):
        core, everything = tab.get_by_label("the core"), tab.get_by_label("everything")
        count = tab.locator(FOLDS).count()
        assert count >= 10
        assert core.is_checked()
        assert counts(tab) == (0, count, 0)
        core.focus()
        tab.keyboard.press("ArrowRight")
        assert everything.is_checked()
        assert counts(tab) == (count, 0, 0)
        tab.goto(home + OTHER, wait_until="networkidle")
        assert tab.get_by_label("everything").is_checked()
        assert counts(tab) == (tab.locator(FOLDS).count(), 0, 0)
        tab.get_by_label("the core").check()
        assert counts(tab)[0] == 0
        tab.goto(home + CHAPTER, wait_until="networkidle")
        assert core.is_checked()
        assert counts(tab) == (0, count, 0)
        assert tab.evaluate("localStorage.getItem('depth')") is None
        assert not wrong, "\n".join(wrong)


@pytest.mark.by_day(1)
@SIZES
@pytest.mark.parametrize("place", ["sixteen-bits", "bad-input", "more-mistakes"])
def test_an_anchor_opens_its_fold_alone(
    browser: Browser, home: str, place: str, size: tuple[int, int]
) -> None:
    """Whether one arrives there or follows a link on the page."""
    with opened(browser, home) as (tab, _):
        tab.set_viewport_size({"width": size[0], "height": size[1]})
        for arrives in (True, False):
            tab.goto(home + CHAPTER + f"#{place}" * arrives, wait_until="networkidle")
            if not arrives:
                tab.evaluate("place => location.hash = place", place)
            tab.wait_for_timeout(400)
            assert 0 <= tab.evaluate(TOP, place) <= 200
            assert counts(tab)[0] == 1
            tab.goto("about:blank")


def test_without_a_script_a_fold_is_a_box(browser: Browser, home: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(home + CHAPTER)
    assert not tab.locator(".depth-switch").is_visible()
    fold = tab.locator(FOLDS).first
    inside = fold.locator("h2, h3").first
    assert not inside.is_visible()
    fold.locator("> summary").click()
    assert inside.is_visible()
    context.close()


@pytest.mark.nightly
def test_paper_has_every_fold_and_no_switch(browser: Browser, home: str) -> None:
    with opened(browser, home, CHAPTER) as (tab, _):
        tab.emulate_media(media="print")
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert counts(tab)[1] == 0
        assert not tab.locator(".depth-switch").is_visible()
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert counts(tab)[0] == 0


@pytest.mark.parametrize("file", CHAPTERS)
def test_a_chapter_says_its_minutes(site: Path, file: str) -> None:
    """Of the core, of everything, and of each fold that is read."""
    page = Source(PROJECT, PROJECT.docs / file)
    html = (site / url(file) / "index.html").read_text("utf-8")
    header = " ".join(html.split('class="chapter-facts"')[1].split("</ul>")[0].split())
    core, whole = map(round, minutes_of(page))
    if not page.depths:
        assert f"{whole} minutes</li>" in header
        return
    assert f"{core} minutes for the core, {whole} for everything" in header
    folds = re.findall(r'<details class="depth( drawing)?" id="([^"]*)"', html)
    assert [name for _, name in folds] == [x.id for x in page.depths]
    read = sum(not drawing for drawing, _ in folds)
    assert html.count('<span class="depth-minutes">') == read
