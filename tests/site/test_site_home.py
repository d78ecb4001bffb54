"""The home answers on its first screen, and a link to it says what it leads to."""

import pytest
from playwright.sync_api import Browser

from test_site_browser import opened

SCREENS = {"laptop": (1366, 650), "phone": (390, 664), "small phone": (360, 640)}
BOX = "all => all.map((x) => x.getBoundingClientRect()).map((x) => [x.top, x.bottom])"


@pytest.mark.parametrize("screen", SCREENS)
def test_what_is_typed_is_answered_without_scrolling(
    browser: Browser, home: str, screen: str
) -> None:
    """Before the model is there, for a date of its training, and where it is unsure."""
    width, height = SCREENS[screen]
    with opened(browser, home) as (tab, wrong):
        tab.set_viewport_size({"width": width, "height": height})
        tab.reload(wait_until="networkidle")
        wrong.clear()  # the reload broke off what the first visit asked for

        def seen(selector: str) -> bool:
            boxes = tab.locator(selector).evaluate_all(BOX)
            return bool(boxes) and all(0 <= a < b <= height for a, b in boxes)

        assert seen(".home-top h1, .home-actions a, .entry-input")
        assert seen("svg.writing .step text")
        for text in ("20 de mayo de 2037", "22.11.2026"):
            tab.locator(".entry-input").fill(text)
            tab.keyboard.press("Enter")
            tab.get_by_text("11 of 11 tokens").wait_for()
            assert tab.locator(".entry-note").is_visible() == ("." in text)
            shown = ".entry-input, .stage-source bdi, .stage-written .stage-token"
            assert seen(shown), text
            assert tab.evaluate("scrollY") == 0
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert not wrong, "\n".join(wrong)
