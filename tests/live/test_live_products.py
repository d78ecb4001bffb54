"""The product of two positions, clock by clock, is that of the package's rows."""

import re

import pytest
import torch
from playwright.sync_api import Locator, Page

import live_driving as live
from live_serving import DOCS
from tformer.nn.positions import sinusoidal_positions

PIECE = "products"
TABLE = sinusoidal_positions(200, 64)  # the chapter's
SHOWN = (0, 4, 8, 12)
BARS = """bars => bars.map(
  b => (b.classList.contains("positive") ? 1 : -1) * b.getAttribute("height") / 40)"""
MARK = """() => {
  const curve = document.querySelector(".products-curve")
  const dot = document.querySelector(".products-dot")
  const points = curve.getAttribute("d").slice(1).split("L")
  const texts = [...curve.parentNode.querySelectorAll("text.number")]
  return [
    points.map((point) => point.split(" ").map(Number)),
    [dot.cx.baseVal.value, dot.cy.baseVal.value],
    texts.pop().textContent, curve.ownerSVGElement.viewBox.baseVal.width,
  ]
}"""


def handle(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=f"position {name}")


def near(value, expected, digits: float = 5.01e-5):
    assert value == pytest.approx(expected, rel=0, abs=digits)


def check(page: Page) -> None:
    """Compare what is shown with the rows of the positions that the handles tell."""
    p, q = (int(handle(page, x).get_attribute("aria-valuetext") or "") for x in "pq")
    for name, place in (("p", p), ("q", q)):
        assert handle(page, name).get_attribute("aria-valuenow") == str(place)
        assert handle(page, name).locator("text").last.text_content() == str(place)
    label = page.locator(".products-line > text").text_content() or ""
    assert live.number(label.removeprefix("p − q = ")) == p - q
    added = (TABLE[p] * TABLE[q]).view(32, 2).sum(1)  # of each clock
    for text in page.locator(".products-equation b").all_inner_texts():
        near(live.number(text), added.sum().item())
    speed = 10000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    for row in live.table(page, "What each clock adds")[1:]:
        i, at_p, at_q, adds = map(live.number, row)
        near(adds, added[int(i)].item())
        near([at_p, at_q], [x * speed[int(i)].item() for x in (p, q)], 5.01e-3)
    clocks = page.locator(".products-clock").all()
    for i, clock in zip(SHOWN, clocks, strict=True):
        assert f"clock {i}" in clock.inner_text().split("\n")[0]
        near(live.number(clock.locator("b").inner_text()), added[i].item())
        for letter, place in (("p", p), ("q", q)):
            path = clock.locator(f".products-hand.{letter}").get_attribute("d") or ""
            x, y = (float(v) / 40 for v in re.findall(r"-?[\d.]+", path)[2:])
            near([x, -y], TABLE[place, 2 * i : 2 * i + 2].tolist(), 1e-3)
    bars = page.locator(".products-bars rect").evaluate_all(BARS)
    near(bars, added.tolist(), 0.021)  # a bar has at least 0.8 pixels
    check_mark(page, p - q, added.sum().item())


def check_mark(page: Page, distance: int, product: float) -> None:
    """Check the dot: it is on the curve, above its distance, beside its value."""
    points, dot, said, wide = page.evaluate(MARK)
    near(dot, points[distance + 199], 0.2)
    near(live.number(said), product)
    across = torch.linspace(26, wide - 8, 399, dtype=torch.float64)  # -199 … 199
    near([x for x, _ in points], across.tolist(), 0.06)
    products = (TABLE[:1] @ TABLE.T)[0]
    every = torch.cat((products.flip(0), products[1:]))  # distances -199 … 199
    curve = 124 - every / 32 * 112  # pixels: 0 and 32
    near([y for _, y in points], curve.tolist(), 0.06)


@live.IN_BOTH
def test_it_starts_with_a_distance_of_the_chapter(page):
    text = (DOCS / "chapters/positions.md").read_text("utf-8")
    (printed,) = re.findall(r"^distance +5: +([\d.]+)", text, re.MULTILINE)
    assert page.locator(".products-equation b").first.inner_text() == printed
    check(page)


@pytest.mark.nightly
def test_keys_and_buttons(page):
    product = page.locator(".products-equation b").first
    before = product.inner_text()
    for _ in range(4):
        page.get_by_role("button", name="Both 10 to the left").click()
        assert product.inner_text() == before  # it stays, also at the end of the line
        check(page)
    assert handle(page, "q").get_attribute("aria-valuetext") == "0"
    page.get_by_role("button", name="Swap").click()
    assert product.inner_text() == before
    page.get_by_role("button", name="Both 10 to the right").click()
    check(page)
    for name, key in (("p", "ArrowLeft"), ("q", "Shift+ArrowUp"), ("p", "ArrowDown")):
        for _ in range(7):
            handle(page, name).press(key)
        check(page)
    assert product.inner_text() != before


@pytest.mark.parametrize("phone", [False, True])
def test_both_are_dragged(live_page, phone):
    page = live.ready(live_page(live.figure(PIECE), phone=phone))
    handle(page, "p").scroll_into_view_if_needed()
    for name, by in (("p", 130), ("q", 60), ("p", -90), ("q", 2000)):
        box = handle(page, name).locator(".knob").bounding_box()
        x, y = box["x"] + 13, box["y"] + 13
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + by, y, steps=4)
        page.mouse.up()
        check(page)
    assert handle(page, "q").get_attribute("aria-valuetext") == "199"


test_a_planted_fault_is_seen = live.planted(
    "products",
    check,
    ("pieces/positions/table.js", "(-2 * i) / width", "(-2 * i) / (width + 1)"),
    ("pieces/products.js", "tableRow(q, WIDTH)]", "tableRow(q + 1, WIDTH)]"),
    ("pieces/products.js", "each.update(p *", "each.update(q *"),
    ("pieces/products.js", "SHOWN[place]", "SHOWN[3 - place]"),
    ("pieces/products/curve.js", "(d + reach)", "(d + reach + 1)"),
    ("pieces/products/bars.js", "values[i]", "values[i + 1]"),
)
