"""The site as a reader sees it: in a browser, light and dark, wide and on a phone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request

from browsers import violations, watch
from navigation import CHAPTERS, FILES, MODULES, PAGES, url

LOOK = Path(__file__).with_name("look.js").read_text("utf-8")
# Colours of code are audited where all of them occur: each word of code is an element,
# and on all pages together there are hundreds of thousands.
COLOURFUL = [page for page in PAGES if page.endswith("/attention/")]
COLOURFUL += [url(file) for file in FILES if file.endswith(".ipynb")]
# By day one page of each kind; at night every page.
CHAPTER_PAGES = [url(file) for file in CHAPTERS]
MODULE_PAGES = list(MODULES.values())
DAILY = {
    *map(url, ("index.md", "live.md", "results.md", "check.md")),
    *CHAPTER_PAGES[::6],
    *COLOURFUL[:1],
    *COLOURFUL[-1:],
    MODULE_PAGES[0],
}
VISITS = [
    pytest.param(page, marks=[pytest.mark.nightly] * (page not in DAILY))
    for page in PAGES
]
# A request that the page's end cuts short; the site has not failed.
LEFT = ("net::ERR_ABORTED", "NS_BINDING_ABORTED")
# All folds open, and all of the page laid out.
SHOWN = """() => {
  for (const fold of document.querySelectorAll("article details")) fold.open = true
  for (const part of document.querySelectorAll(".md-typeset > *, .tabbed-content"))
    part.style.contentVisibility = "visible"
}"""
WIDE = """(boxes) => boxes.filter((box) => box.clientWidth &&
  box.scrollWidth > box.clientWidth).map((box) =>
    `${box.scrollWidth - box.clientWidth} px: ${box.textContent.slice(0, 60)}`)"""
# The pill that unfolds a docstring stands in sight.
HIDDEN = """(pills) => pills.filter((pill) => pill.offsetHeight &&
  pill.getBoundingClientRect().right >
    pill.closest("code").getBoundingClientRect().right
  ).map((pill) => `a fold out of sight: ${pill.ariaLabel}`)"""
# What is not audited is taken away, for axe would walk through it: code whose colours
# are audited elsewhere, and what a formula shows to no screen reader.
LESS = """(parts) => {
  for (const part of document.querySelectorAll(parts)) part.remove()
}"""
SCHEME = "() => document.body.dataset.mdColorScheme"
DESK, PHONE = (1280, 900), (390, 844)


@contextmanager
def blank(browser: Browser, size: tuple[int, int] = DESK) -> Iterator[Page]:
    """Yield a tab in which no page was opened yet."""
    context = browser.new_context(
        color_scheme="light",
        viewport={"width": size[0], "height": size[1]},
        reduced_motion="reduce",
    )
    try:
        yield context.new_page()
    finally:
        context.close()


@contextmanager
def opened(
    browser: Browser, home: str, page: str = ""
) -> Iterator[tuple[Page, list[str]]]:
    """Open a page; yield it with a list of what it complains of, and asks elsewhere."""
    wrong: list[str] = []

    def on_failure(request: Request) -> None:
        if request.failure not in LEFT:
            wrong.append(f"failed: {request.url}: {request.failure}")

    with blank(browser) as tab:
        watch(tab, home, wrong)
        tab.on("requestfailed", on_failure)
        tab.goto(home + page)
        yield tab, wrong


def audit(tab: Page, page: str = "", **options: object) -> list[str]:
    """Return what axe finds in a page, in its code where the colours of code occur."""
    tab.evaluate(LESS, ".katex-html" + ", .highlight" * (page not in COLOURFUL))
    return violations(tab, **options)


def resize(tab: Page, width: int, height: int) -> None:
    tab.set_viewport_size({"width": width, "height": height})


def misfits(tab: Page) -> list[str]:
    """Return formulas wider than a phone, and code wider than a desk, folds open."""
    found = []
    tab.evaluate(SHOWN)
    for width, wide in (
        (390, "div.arithmatex"),
        (360, "div.arithmatex"),
        (1366, "article pre > code"),
    ):
        resize(tab, width, 664)
        said = tab.locator(wide).evaluate_all(WIDE)
        said += tab.locator(".fold-box").evaluate_all(HIDDEN)
        found += [f"at {width} px: {sentence}" for sentence in said]
    return found


@pytest.fixture(scope="module")
def visited(browser: Browser, home: str) -> Iterator[tuple[Page, list[str]]]:
    """One tab for all pages: what they share is loaded once."""
    with opened(browser, home) as both:
        yield both


@pytest.mark.parametrize("page", VISITS)
def test_page(visited: tuple[Page, list[str]], home: str, page: str) -> None:
    """Light and dark, on a phone and at a desk; of a chapter all that is wide fits."""
    tab, wrong = visited
    wrong.clear()
    tab.evaluate("localStorage.clear()")
    tab.emulate_media(color_scheme="light")
    resize(tab, *DESK)
    tab.goto(home + page)
    wrong += tab.evaluate(LOOK)
    resize(tab, *PHONE)
    wrong += [f"on a phone: {sentence}" for sentence in tab.evaluate(LOOK)]
    if page in CHAPTER_PAGES:
        wrong += misfits(tab)
    assert tab.evaluate(SCHEME) == "default"
    resize(tab, *DESK)
    wrong += audit(tab, page)
    tab.emulate_media(color_scheme="dark")
    tab.locator("body[data-md-color-scheme=slate]").wait_for()
    dark = tab.evaluate(LOOK) + audit(tab, page, runOnly=["color-contrast"])
    wrong += [f"in the dark: {sentence}" for sentence in dark]
    assert not wrong, "\n".join(wrong)


def test_a_bad_page_is_noticed(browser: Browser, home: str) -> None:
    bad = """() => {
      const article = document.querySelector("article")
      article.insertAdjacentHTML("beforeend",
        '<p>\\\\(x\\\\)</p><img src="gone.svg"><a href="/"></a><p>pale</p>')
      const [wide, pale] = [...article.querySelectorAll(":scope > p")].slice(-2)
      wide.style.width = "3000px"
      Object.assign(pale.style, {color: "#ccc", background: "#fff"})
      fetch("https://example.org/").catch(() => {})
      return new Promise((done) => setTimeout(done, 300))
    }"""
    with opened(browser, home) as (tab, wrong):
        tab.evaluate(bad)
        wrong += tab.evaluate(LOOK) + audit(tab)
        text = "\n".join(wrong)
        for sign in ("wider", "not seen", "not loaded", "color-contrast", "link-name"):
            assert sign in text
        assert "Content Security Policy" in text


def test_a_request_that_fails_is_noticed_and_one_that_is_left_is_not(
    browser: Browser, home: str
) -> None:
    ask = "(name) => { fetch(name).catch(() => 0) }"
    with opened(browser, home) as (tab, wrong):
        tab.route("**/slow", lambda _: None)
        with tab.expect_request("**/slow"):
            tab.evaluate(ask, "slow")
        with tab.expect_event("requestfailed") as left:
            tab.goto(home + url(CHAPTERS[0]))
        assert left.value.failure in LEFT
        assert not wrong, "\n".join(wrong)
        tab.route("**/refused", lambda route: route.abort("connectionrefused"))
        tab.route("**/blocked", lambda route: route.abort("blockedbyclient"))
        for name in ("refused", "blocked"):
            with tab.expect_event("requestfailed"):
                tab.evaluate(ask, name)
            assert any(x.startswith(f"failed: {tab.url}{name}: ") for x in wrong)
        # A file that is not there is an answer, of which the browser complains.
        with tab.expect_console_message(lambda x: "status of 404" in x.text) as said:
            tab.evaluate(ask, "gone")
        assert said.value.text in wrong


def test_the_drawing_leads_to_every_chapter_by_keyboard(
    browser: Browser, home: str
) -> None:
    with opened(browser, home) as (tab, _):
        tab.locator(".architecture a").first.focus()
        names, targets = set(), set()
        for _ in range(tab.locator(".architecture a").count()):
            target, name, outlined = tab.evaluate(
                """() => {
                  const link = document.activeElement
                  const edge = getComputedStyle(link.querySelector("rect"))
                  return [link.href.baseVal, link.ariaLabel, edge.strokeWidth === "2px"]
                }"""
            )
            assert outlined, name
            names.add(name)
            targets.add(target)
            tab.keyboard.press("Tab")
        # The parts of the machine: the chapters up to the one that joins them, without
        # those of another machine, or of what goes wrong in one.
        last = CHAPTERS.index("chapters/transformer.md")
        others = {
            f"chapters/{x}.md" for x in ("gpt", "leaks", "recurrent", "rank-collapse")
        }
        drawn = {url(x) for x in CHAPTERS[: last + 1] if x not in others}
        assert targets == drawn
        assert all(names)


def test_the_scheme_is_chosen_by_hand(browser: Browser, home: str) -> None:
    with opened(browser, home) as (tab, _):
        assert tab.evaluate(SCHEME) == "default"
        toggle = tab.locator("form[data-md-component=palette] label:not([hidden])")
        toggle.click()
        toggle.click()
        assert tab.evaluate(SCHEME) == "slate"
        tab.goto(home + url(CHAPTERS[0]))
        assert tab.evaluate(SCHEME) == "slate"
