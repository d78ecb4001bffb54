"""Driving a piece as a reader does, and reading what it shows."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from browsers import violations

NAME = """() => {
  const at = document.activeElement
  if (!at.closest(".live-piece")) return null
  const said = (node) => node.nodeType === Node.TEXT_NODE ? node.data
    : node.ariaHidden === "true" ? "" : [...node.childNodes].map(said).join("")
  const label = at.labels?.[0]
  const text = at.options ? label?.firstChild.data : label?.innerText
  return text || at.ariaLabel || said(at)
}"""
STILL = (
    "() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => 0)))"
)
SCHEME = "(scheme) => { document.body.dataset.mdColorScheme = scheme }"
WIDER = (
    "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
)
# The modules are the same: in Firefox the engine is compared by day, all else at night.
IN_BOTH_BY_DAY = pytest.mark.parametrize(
    "live_page", ["chromium", "firefox"], indirect=True
)
IN_BOTH = pytest.mark.parametrize(
    "live_page",
    ["chromium", pytest.param("firefox", marks=pytest.mark.nightly)],
    indirect=True,
)
POWERS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
STATIC = (
    '<figure class="live" data-live="{}"><p class="static">The picture.</p></figure>'
)


def figure(name: str) -> str:
    """Return the HTML of a piece, with something static in it."""
    return STATIC.format(name)


def ready(page: Page) -> Page:
    """Wait until the first live picture is drawn."""
    page.locator("figure.live-on .live-piece").wait_for()
    return page


def still(page: Page) -> Page:
    """Wait until nothing moves: in Firefox a test cannot ask for less motion."""
    page.evaluate(STILL)
    return page


def choose(page: Page, label: str, on: bool = True) -> None:
    """Take an option, or set a switch, by a click that waits for nothing to be drawn.

    It is how a test comes to a setting. That a mouse reaches it, other tests show.
    """
    control = page.get_by_label(label, exact=True)
    if control.is_checked() != on:
        control.dispatch_event("click")


def press(page: Page, name: str) -> None:
    """Press a button, as `choose` does."""
    page.get_by_role("button", name=name, exact=True).dispatch_event("click")


def slide(page: Page, label: str, place: float) -> None:
    """Move the slider with this name; sliders over a list of values take its index."""
    page.get_by_label(label, exact=True).fill(str(place))


def shown(page: Page, label: str) -> str:
    """Return the value that stands above a slider, once its name for assistive
    technology says the same."""
    slider = page.get_by_label(label, exact=True)
    text = page.locator(f"output[for={slider.get_attribute('id')}]").inner_text()
    assert slider.get_attribute("aria-valuetext") == text
    return text


def table(page: Page, caption: str) -> list[list[str]]:
    """Return the cells of a table, its heading first; it is opened if it is folded."""
    found = page.locator("table", has=page.locator("caption", has_text=caption))
    fold = page.locator("details:not([open])", has=found)
    if fold.count():
        fold.evaluate("fold => { fold.open = true }")
    found.wait_for(state="visible")
    rows = "rows => rows.map(r => [...r.cells].map(c => c.innerText.trim()))"
    cells: list[list[str]] = found.locator("tr").evaluate_all(rows)
    return cells


def number(text: str) -> float:
    """Read a number as pieces write it: "1,024", "−0.5", "8.2 · 10⁻¹⁶", "18 %"."""
    plain = text.replace(",", "").replace("−", "-")
    if found := re.fullmatch(r"(-?[\d.]+) · 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", plain):
        return float(f"{found[1]}e{found[2].translate(POWERS)}")
    if plain.endswith("%"):
        return float(plain[:-1]) / 100
    return float(plain)


def digits(text: str) -> float:
    """Return how far off a number that is written so may be: half its last digit."""
    plain = re.sub(r"( · 10.*| %)$", "", text).replace(",", "")
    half = 0.5 * 10.0 ** -len(plain.partition(".")[2])
    rest = text[len(re.match(r"[−\d.,]+", text)[0]) :]  # type: ignore[index]
    return half * number(f"1{rest}") * 1.001


def same(text: str, expected: float) -> bool:
    """Say whether a text is a number, rounded as far as it shows digits."""
    return abs(number(text) - expected) <= digits(text) + 1e-12 * abs(expected)


def audit(
    live_page: Callable[..., Page],
    name: str,
    busy: Callable[[Page], object] = still,
    body: str = "",
) -> None:
    """Look at a piece in light, in dark and on a phone: nobody may be shut out.

    Args:
        live_page: the fixture.
        name: the piece.
        busy: what is done with the page first, so that all that it can show is there.
        body: the HTML around the piece, where it needs its own.
    """
    for phone in (False, True):
        page = ready(live_page(body or figure(name), phone=phone))
        busy(page)
        folds = page.locator("figure.live details")
        folds.evaluate_all("all => all.forEach((fold) => { fold.open = true })")
        assert violations(page, "figure.live") == []
        assert page.evaluate(WIDER) <= 0
        if not phone:
            page.evaluate(SCHEME, "slate")
            assert violations(still(page), "figure.live") == []
            page.evaluate(SCHEME, "default")


def planted(
    name: str, check: Callable[[Page], object], *faults: tuple[str, str, str], body=""
):
    """Make the test that a piece with a fault in its modules does not pass a check.

    The first fault is planted by day, the others at night.

    Args:
        name: the piece.
        check: drives it, and compares; it passes where nothing is planted.
        faults: the file in docs/live, what stands there, and what stands there instead.
        body: the HTML around the piece, where it needs its own.
    """

    night = [pytest.mark.nightly]
    planted_faults = [
        pytest.param(fault, id=fault[2], marks=night * (n > 0))
        for n, fault in enumerate(faults)
    ]

    @pytest.mark.parametrize("fault", planted_faults)
    def test(live_page, live_site, fault):
        live_site.plant(*fault)
        page = ready(live_page(body or figure(name)))
        with pytest.raises(AssertionError):
            check(page)

    return test


def keys_reach(page: Page, until: str = "") -> list[str]:
    """Return the names of what the Tab key reaches inside the piece, in order."""
    page.locator("h1").evaluate("h => { h.tabIndex = -1; h.focus() }")
    names: list[str] = []
    for _ in range(200):
        page.keyboard.press("Tab")
        name = page.evaluate(NAME)
        if name is None:
            return names
        names.append(" ".join(name.split()))
        if names[-1] == until:
            return names
    raise AssertionError(f"Tab does not leave the piece: {names}")
