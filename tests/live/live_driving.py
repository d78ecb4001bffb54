"""Driving a piece as a reader does, and reading what it shows."""

import re
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, Request

AXE = Path(sys.prefix) / "npm" / "node_modules" / "axe-core" / "axe.min.js"
AUDIT = """async () => {
  const options = {resultTypes: ["violations"], preload: false}
  const found = await axe.run(document.querySelector("figure.live"), options)
  return found.violations.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target} ${node.any[0]?.message ?? node.failureSummary}`))
}"""
NAME = """() => {
  const at = document.activeElement
  if (!at.closest(".live-piece")) return null
  const said = (node) => node.nodeType === Node.TEXT_NODE ? node.data
    : node.ariaHidden === "true" ? "" : [...node.childNodes].map(said).join("")
  return at.labels?.[0]?.innerText ?? at.ariaLabel ?? said(at)
}"""
STILL = (
    "() => Promise.all(document.getAnimations().map((a) => a.finished.catch(() => 0)))"
)
WIDER = (
    "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
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
    fold = page.locator("details", has=found)
    if fold.count() and fold.get_attribute("open") is None:
        fold.locator("summary").click()
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
    live_page: Any, name: str, busy: Any = None, body: str | None = None
) -> list[str]:
    """Look at a piece in light, dark and on a phone; return what is wrong.

    Args:
        live_page: the fixture.
        name: the piece.
        busy: what is done with the page first, so that all that it can show is there.
        body: the HTML around the piece, where it needs its own.
    """
    wrong = []
    for look in ({}, {"dark": True}, {"phone": True}):
        page = ready(live_page(body or figure(name), **look))
        if busy:
            busy(page)
        for fold in page.locator("details > summary").all():
            fold.click()
        page.evaluate(AXE.read_text("utf-8"))
        found = page.evaluate(AUDIT)
        if by := page.evaluate(WIDER):
            found.append(f"wider than the window by {by} px")
        wrong += [f"{look}: {sentence}" for sentence in found]
    return wrong


def keys_reach(page: Page) -> list[str]:
    """Return the names of what the Tab key reaches inside the piece, in order."""
    page.locator("h1").evaluate("h => { h.tabIndex = -1; h.focus() }")
    names: list[str] = []
    for _ in range(200):
        page.keyboard.press("Tab")
        name = page.evaluate(NAME)
        if name is None:
            return names
        names.append(" ".join(name.split()))
    raise AssertionError(f"Tab does not leave the piece: {names}")


def watch(page: Page, home: str, wrong: list[str]) -> None:
    """Write down what a page complains of, and what it asks for elsewhere."""

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    def on_request(asked: Request) -> None:
        if not asked.url.startswith((home, "data:", "blob:")):
            wrong.append(f"elsewhere: {asked.url}")

    page.on("console", on_console)
    page.on("request", on_request)
    page.on("pageerror", lambda error: wrong.append(str(error)))
