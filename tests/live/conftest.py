"""Live pieces in a browser: each page that a test opens must stay without complaint."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from browsers import watch
from live_driving import figure, ready
from live_explorer import settled
from live_serving import LiveSite
from serving import served

DESK, PHONE = (1280, 900), (390, 844)
ANEW = """() => new Promise((done) => {
  const old = document.querySelector(".live-piece");
  const piece = document.createElement(old.localName);
  for (const end of ["live-ready", "live-failed"]) {
    piece.addEventListener(end, () =>
      requestAnimationFrame(() => requestAnimationFrame(done)));
  }
  for (let i = setTimeout(() => 0); i > 0; i--) clearTimeout(i);  // the old one's
  history.replaceState(null, "", location.pathname);
  old.replaceWith(piece);
  scrollTo(0, 0);
})"""


@dataclass(eq=False)
class Opened:
    """A page, what it complained of, and what stands on it, if it may be used again."""

    page: Page
    wrong: list[str] = field(default_factory=list)
    body: str | None = None
    address: str = ""


@pytest.fixture(scope="session")
def served_site() -> Iterator[LiveSite]:
    site = LiveSite()
    with served(site.read) as site.address:
        yield site


@pytest.fixture
def live_site(served_site: LiveSite) -> Iterator[LiveSite]:
    """docs/live, served; `live_site.changed` is of one test only."""
    yield served_site
    served_site.changed.clear()


@pytest.fixture(scope="session")
def kept_pages() -> dict[tuple[object, ...], Opened]:
    """The pages that stand open from test to test."""
    return {}


@pytest.fixture
def page(request: pytest.FixtureRequest, live_page: Callable[..., Page]) -> Page:
    """A page with the piece that the module calls `PIECE`, as nobody has touched it."""
    page = ready(live_page(figure(request.module.PIECE)))
    return settled(page) if request.module.PIECE == "model" else page


@pytest.fixture(params=["chromium"])
def live_page(
    request: pytest.FixtureRequest,
    live_site: LiveSite,
    kept_pages: dict[tuple[object, ...], Opened],
) -> Iterator[Callable[..., Page]]:
    """Open pages around a piece; at the end no page may have complained.

        def test_x(live_page):
            page = live_page('<figure class="live" data-live="masks">…</figure>')

    Where the last test had the same body, and no file is served otherwise, the page
    stays, and the piece is made anew, as nobody has touched it.

    Keywords of the call: `phone`, `fresh` (a browser window of its own, for
    what a loaded page cannot take back), `expected` (parts of complaints that the test
    wants: they must come), and those of Playwright's `new_context`. A complaint is an
    error on the console, an exception, a request that fails or goes elsewhere.

    In Firefox as well: `@IN_BOTH`.
    """
    name = "browser" if request.param == "chromium" else request.param
    browser: Browser = request.getfixturevalue(name)
    used: list[Opened] = []
    wanted: list[str] = []

    def open_page(
        body: str = "",
        *,
        phone: bool = False,
        fresh: bool = False,
        expected: tuple[str, ...] = (),
        **context: Any,
    ) -> Page:
        width, height = PHONE if phone else DESK
        if request.param == "chromium":
            context.setdefault("color_scheme", "light")
            context.setdefault("reduced_motion", "reduce")
            context.setdefault("has_touch", phone)
        key = (request.param, phone, *sorted(context.items()))
        opened = kept_pages.get(key)
        if fresh or opened is None:
            context.setdefault("viewport", {"width": width, "height": height})
            opened = Opened(browser.new_context(**context).new_page())
            watch(opened.page, live_site.address, opened.wrong)
            if not fresh:
                kept_pages[key] = opened
        used.append(opened)
        wanted.extend(expected)
        page = opened.page
        # With data-keep a piece changes what stands beside it.
        stays = not live_site.changed and "data-keep" not in body
        if stays and (opened.body, opened.address) == (body, page.url.split("#")[0]):
            if 'data-live="' in body:
                page.mouse.move(0, 0)
                page.evaluate(ANEW)
            return page
        opened.body = body if stays else None
        opened.address = live_site.page(body, eval_=request.param == "firefox")
        page.goto(opened.address)
        return page

    yield open_page
    wrong: list[str] = []
    for opened in used:
        if opened in kept_pages.values():
            opened.page.evaluate("0")  # what was said until now has come
        else:
            opened.page.context.close()
        wrong += opened.wrong
        opened.wrong.clear()
    for part in wanted:
        assert any(part in text for text in wrong), (part, wrong)
    assert not [x for x in wrong if not any(part in x for part in wanted)]
