"""Where a page is not, its name is searched for."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route

from test_site_browser import opened


def lost(site: Path, browser: Browser, home: str, page: str) -> tuple[str, str, int]:
    """Open an address where nothing is; return field, search, number of results."""
    body = (site / "404.html").read_text("utf-8")

    def answer(route: Route) -> None:
        route.fulfill(status=404, body=body, content_type="text/html; charset=utf-8")

    with opened(browser, home) as (tab, wrong):
        tab.route(f"{home}{page}", answer)
        tab.goto(home + page)
        field = tab.locator("#lost").input_value()
        results = tab.locator(".md-search-result__item a")
        if field:
            results.first.wait_for()
        searched = tab.locator(".md-search__input").input_value()
        # The browser itself says that the page is a 404; nothing else may be wrong.
        rest = [each for each in wrong if "404" not in each]
        assert not rest, "\n".join(rest)
        return field, searched, results.count()


def test_the_name_of_a_lost_page_is_searched_for(
    site: Path, browser: Browser, home: str
) -> None:
    field, searched, results = lost(site, browser, home, "chapters/beam-search/")
    assert field == searched == "beam search"
    assert results > 2


def test_the_page_itself_searches_for_nothing(
    site: Path, browser: Browser, home: str
) -> None:
    assert lost(site, browser, home, "404.html") == ("", "", 0)


@pytest.mark.nightly
def test_without_scripts_the_field_leads_to_the_search_of_the_home_page(
    browser: Browser, home: str
) -> None:
    with opened(browser, home, "404.html") as (tab, wrong):
        tab.locator("#lost").fill("causal mask")
        tab.keyboard.press("Enter")
        tab.locator(".md-search-result__item a").first.wait_for()
        assert tab.url.startswith(f"{home}?q=causal")
        assert not wrong, "\n".join(wrong)
