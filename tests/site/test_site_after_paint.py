"""Material's script comes after the first paint: nothing that a reader did is lost.

In these tests it is held back as long as they want it, as a slow network would.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from test_site_browser import DESK, PHONE, blank
from test_site_light import ATTENTION, HOME, SHIFT, TRANSFORMER

MOUNTED = """() => new Promise((done) => {
  const ask = () => window.document$
    ? document$.subscribe(() => setTimeout(done, 300)) : setTimeout(ask, 20)
  ask()
})"""
SEARCH, DRAWER = "document.getElementById('__search')", "#__drawer"
TOOLTIP = ".md-tooltip2--active"
Come = Callable[[], None]
SIZES = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])


@contextmanager
def waiting(
    browser: Browser, address: str, size: tuple[int, int] = DESK
) -> Iterator[tuple[Page, Come]]:
    """Open a page without Material's script; yield it, and what lets it come."""
    held: list[Route] = []
    comes = False
    with blank(browser, size) as tab:

        def answer(route: Route) -> None:
            if comes:
                route.continue_()
            else:
                held.append(route)

        def come() -> None:
            nonlocal comes
            comes = True
            for route in held:
                route.continue_()
            tab.evaluate(MOUNTED)

        tab.route("**/bundle.*", answer)
        tab.goto(address, wait_until="domcontentloaded")
        yield tab, come


@pytest.mark.parametrize("page", [HOME, ATTENTION])
def test_it_keeps_no_paint_waiting(browser: Browser, home: str, page: str) -> None:
    with blank(browser, PHONE) as tab:
        tab.add_init_script(
            "Object.defineProperty(window, 'document$', {configurable: true,"
            "set() { window.begun = performance.now() }})"
        )
        tab.goto(home + page)
        tab.wait_for_function("() => window.begun")
        painted = "performance.getEntriesByName('first-contentful-paint')[0]"
        tab.wait_for_function(f"() => {painted}")  # it is listed a little later
        assert tab.evaluate(f"begun > {painted}.startTime")


def test_it_lays_out_no_fold_that_is_shut(browser: Browser, home: str) -> None:
    with waiting(browser, home + ATTENTION) as (tab, come):
        tab.evaluate(
            """() => {
              window.asked = [] // of headings
              const all = HTMLElement.prototype
              const { get } = Object.getOwnPropertyDescriptor(all, "offsetTop")
              Object.defineProperty(all, "offsetTop", {
                get() {
                  const shut = this.closest("details:not([open])")
                  if (shut && this.matches("h2, h3")) asked.push(this.id)
                  return get.call(this)
                },
              })
            }"""
        )
        come()
        assert tab.locator("article details:not([open]) :is(h2, h3)[id]").count() > 5
        assert tab.evaluate("asked") == []


def test_it_does_not_wait_for_the_paint_of_a_hidden_page(
    browser: Browser, home: str
) -> None:
    with blank(browser) as tab:
        tab.add_init_script(
            "Object.defineProperty(document, 'hidden', {get: () => true});"
            "window.requestAnimationFrame = () => 0"
        )
        tab.goto(home)
        tab.evaluate(MOUNTED)


def test_what_is_typed_before_is_searched(browser: Browser, home: str) -> None:
    with waiting(browser, home) as (tab, come):
        tab.keyboard.press("/")
        tab.keyboard.type("sof")
        assert tab.evaluate(f"{SEARCH}.checked")
        tab.keyboard.press("Escape")
        assert not tab.evaluate(f"{SEARCH}.checked")
        tab.keyboard.press("s")
        tab.keyboard.type("softmax")
        come()
        tab.locator(".md-search-result__link").first.wait_for()
        assert tab.locator(".md-search__input").input_value() == "softmax"


@SIZES
def test_a_search_opened_before_stays_open(
    browser: Browser, home: str, size: tuple[int, int]
) -> None:
    """Where the address names a place, too: Material closes the search there."""
    with waiting(browser, f"{home}{ATTENTION}#check-it", size) as (tab, come):
        if size == PHONE:
            tab.locator(".md-header__button[for=__search]").click()
        else:
            tab.locator(".md-search__input").click()
        tab.keyboard.type("mask")
        assert tab.evaluate(f"{SEARCH}.checked")
        come()
        tab.locator(".md-search-result__link").first.wait_for()
        assert tab.evaluate(f"{SEARCH}.checked")
        assert tab.locator(".md-search__input").input_value() == "mask"
        tab.keyboard.press("Escape")
        tab.wait_for_function(f"() => !{SEARCH}.checked")


def test_a_drawer_opened_before_stays_open(browser: Browser, home: str) -> None:
    with waiting(browser, f"{home}{ATTENTION}#check-it", PHONE) as (tab, come):
        tab.locator(".md-header__button[for=__drawer]").click()
        come()
        assert tab.locator(DRAWER).is_checked()
        tab.locator(".md-overlay").click(position={"x": 380, "y": 400})
        assert not tab.locator(DRAWER).is_checked()


def test_keys_turn_pages_though_it_never_comes(browser: Browser, home: str) -> None:
    with blank(browser) as tab:
        tab.route("**/bundle.*", lambda route: route.abort())
        tab.goto(home + ATTENTION)
        ask = "relation => document.querySelector(`link[rel=${relation}]`).href"
        before, after = tab.evaluate(ask, "prev"), tab.evaluate(ask, "next")
        for key, address in ((",", before), ("n", after), ("p", before), (".", after)):
            with tab.expect_navigation(url=address):
                tab.keyboard.press(key)
            tab.go_back()
        tab.locator(".md-search__input").focus()
        tab.keyboard.type("n")  # is a letter there
        assert tab.url == home + ATTENTION


def test_a_term_that_has_the_focus_is_explained(browser: Browser, home: str) -> None:
    with waiting(browser, home + ATTENTION) as (tab, come):
        tab.locator("article abbr").first.focus()
        come()
        tab.locator(TOOLTIP).wait_for()


def test_a_term_that_is_pointed_at_is_explained(browser: Browser, home: str) -> None:
    with waiting(browser, home + ATTENTION) as (tab, come):
        tab.locator("article abbr").first.hover()
        come()
        tab.locator(TOOLTIP).wait_for()


def test_a_tab_chosen_before_is_linked_and_remembered(
    browser: Browser, home: str
) -> None:
    """And is there before the script comes to the page that follows."""
    chosen = """() => [...document.querySelectorAll(".tabbed-set")]
      .filter((set) => set.textContent.includes("NumPy"))
      .map((set) => set.querySelector(":scope > :checked").labels[0])
      .map((label) => label.textContent.trim())"""
    with waiting(browser, home + TRANSFORMER) as (tab, come):
        assert set(tab.evaluate(chosen)) == {"PyTorch"}
        tab.get_by_label("everything").check()
        labels = tab.locator(".tabbed-labels", has_text="NumPy").first
        labels.scroll_into_view_if_needed()
        tab.evaluate("() => new Promise(requestIdleCallback)")
        top = labels.evaluate("x => x.getBoundingClientRect().top")
        labels.get_by_text("NumPy", exact=True).click()
        assert abs(labels.evaluate("x => x.getBoundingClientRect().top") - top) < 2
        assert set(tab.evaluate(chosen)) == {"NumPy"}
        come()
        assert set(tab.evaluate(chosen)) == {"NumPy"}
        labels.get_by_text("PyTorch", exact=True).click()  # a link now
        assert set(tab.evaluate(chosen)) == {"PyTorch"}
        labels.get_by_text("NumPy", exact=True).click()
        tab.route("**/bundle.*", lambda route: route.abort())
        tab.goto(home + TRANSFORMER, wait_until="domcontentloaded")
        assert set(tab.evaluate(chosen)) == {"NumPy"}


@SIZES
@pytest.mark.parametrize("page", [HOME, ATTENTION])
def test_nothing_moves_when_it_comes(
    browser: Browser, home: str, page: str, size: tuple[int, int]
) -> None:
    with waiting(browser, home + page, size) as (tab, come):
        tab.evaluate("document.fonts.ready.then(() => null)")
        assert tab.evaluate(SHIFT) <= 0.03  # of the fonts
        begun = tab.evaluate("performance.now()")
        come()
        later = SHIFT.replace("!entry.had", f"entry.startTime > {begun} && !entry.had")
        assert tab.evaluate(later) <= 0.001


@pytest.mark.parametrize("place", ["check-it", "sixteen-bits"])  # in sight, in a fold
def test_an_anchor_is_where_it_was(browser: Browser, home: str, place: str) -> None:
    """And the list of contents marks it."""
    top = f"document.getElementById('{place}').getBoundingClientRect().top"
    with waiting(browser, f"{home}{ATTENTION}#{place}") as (tab, come):
        tab.wait_for_function(f"() => 0 <= {top} && {top} < 200")
        come()
        assert 0 <= tab.evaluate(top) <= 200
        of_page = tab.locator(f".md-sidebar--secondary a[href='#{place}']")
        expect(of_page).to_have_class(re.compile("md-nav__link--active"))


def test_the_browsers_colours_follow_the_scheme(browser: Browser, home: str) -> None:
    """Before the script and after it, which would style the whole page again."""
    with waiting(browser, home) as (tab, come):
        told = expect(tab.locator("meta[name=color-scheme]"))  # one
        told.to_have_attribute("content", "light")
        tab.emulate_media(color_scheme="dark")
        told.to_have_attribute("content", "dark")
        assert tab.evaluate("document.body.dataset.mdColorScheme") == "slate"
        come()
        told.to_have_attribute("content", "dark")
        tab.locator("form[data-md-component=palette] label:not([hidden])").click()
        told.to_have_attribute("content", "light")


def test_paper_and_rings_need_no_script(browser: Browser, home: str) -> None:
    """Folds are open in print; the keyboard's focus is seen."""
    with waiting(browser, home + ATTENTION) as (tab, _):
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert tab.locator("article details:not([open])").count() == 0
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        summary = tab.locator("article summary:visible").first
        tab.keyboard.press("Shift")
        summary.focus()
        assert summary.evaluate("x => getComputedStyle(x).outlineStyle") == "solid"
