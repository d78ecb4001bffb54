"""Live pieces in a browser: each page that a test opens must stay without complaint."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from live_driving import watch
from live_serving import LiveSite, served

DESK, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="session")
def served_site() -> Iterator[LiveSite]:
    with served(LiveSite()) as site:
        yield site


@pytest.fixture
def live_site(served_site: LiveSite) -> Iterator[LiveSite]:
    """docs/live, served; `live_site.changed` is of one test only."""
    yield served_site
    served_site.changed.clear()
    served_site.pages.clear()


@pytest.fixture(params=["chromium"])
def live_page(
    request: pytest.FixtureRequest, live_site: LiveSite
) -> Iterator[Callable[..., Page]]:
    """Open pages around a piece; at the end no page may have complained.

        def test_x(live_page):
            page = live_page('<figure class="live" data-live="masks">…</figure>')

    Keywords of the call: `dark`, `phone`, `expected` (parts of complaints that the test
    wants: they must come), and those of Playwright's `new_context`. A complaint is an
    error on the console, an exception, a request that fails or goes elsewhere.

    In Firefox as well: `@pytest.mark.parametrize("live_page", BOTH, indirect=True)`.
    """
    name = "browser" if request.param == "chromium" else request.param
    browser: Browser = request.getfixturevalue(name)
    opened: list[tuple[Page, list[str], tuple[str, ...]]] = []

    def open_page(
        body: str = "",
        *,
        dark: bool = False,
        phone: bool = False,
        expected: tuple[str, ...] = (),
        **context: Any,
    ) -> Page:
        width, height = PHONE if phone else DESK
        if request.param == "chromium":
            context.setdefault("color_scheme", "dark" if dark else "light")
            context.setdefault("reduced_motion", "reduce")
            context.setdefault("has_touch", phone)
        context.setdefault("viewport", {"width": width, "height": height})
        page = browser.new_context(**context).new_page()
        wrong: list[str] = []
        opened.append((page, wrong, expected))
        watch(page, live_site.address, wrong)
        scheme, eval_ = "slate" if dark else "default", request.param == "firefox"
        page.goto(live_site.page(body, scheme, eval_=eval_))
        return page

    yield open_page
    for page, wrong, expected in opened:
        page.context.close()
        for part in expected:
            assert any(part in text for text in wrong), (part, wrong)
        assert not [x for x in wrong if not any(part in x for part in expected)]
