"""The product of two positions, clock by clock, is that of the package's rows."""

import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Locator, Page

from live_driving import audit, figure, keys_reach, number, ready, table
from live_faults import plant
from live_serving import ROOT, LiveSite
from tformer.nn.positions import sinusoidal_positions

Open = Callable[..., Page]
TABLE = sinusoidal_positions(200, 64)  # the chapter's
SHOWN = (0, 4, 8, 12)


def handle(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=f"position {name}")


def wrong_products(page: Page) -> list[str]:
    """Compare what is shown with the rows of the positions that the handles tell."""
    p, q = (int(handle(page, x).get_attribute("aria-valuetext") or "") for x in "pq")
    wrong = []
    for name, place in (("p", p), ("q", q)):
        grip = handle(page, name)
        if grip.get_attribute("aria-valuenow") != str(place):
            wrong.append(f"{name}: aria-valuenow")
        if (text := grip.locator("text").last.text_content()) != str(place):
            wrong.append(f"{name}: {text}")
    label = page.locator(".products-line > text").text_content() or ""
    if number(label.removeprefix("p − q = ")) != p - q:
        wrong.append(label)
    added = (TABLE[p] * TABLE[q]).view(32, 2).sum(1)  # of each clock
    for text in page.locator(".products-equation b").all_inner_texts():
        if abs(number(text) - added.sum().item()) > 5.01e-5:
            wrong.append(f"product: {text}")
    speed = 10000.0 ** -(torch.arange(0, 64, 2, dtype=torch.float64) / 64)
    for row in table(page, "What each clock adds")[1:]:
        i, at_p, at_q, adds = map(number, row)
        clock = int(i)
        if abs(adds - added[clock]) > 5.01e-5:
            wrong.append(f"clock {clock} adds {adds}")
        for told, place in ((at_p, p), (at_q, q)):
            if abs(told - place * speed[clock]) > 5.01e-3:
                wrong.append(f"clock {clock}: angle {told}")
    clocks = page.locator(".products-clock").all()
    for i, clock in zip(SHOWN, clocks, strict=True):
        text = clock.inner_text()
        cosine = number(clock.locator("b").inner_text())
        if f"clock {i}" not in text.split("\n")[0] or abs(cosine - added[i]) > 5.01e-5:
            wrong.append(text)
        for letter, place in (("p", p), ("q", q)):
            path = clock.locator(f".products-hand.{letter}").get_attribute("d") or ""
            x, y = (float(v) for v in re.findall(r"-?[\d.]+", path)[2:])
            row = TABLE[place, 2 * i : 2 * i + 2]
            if not torch.allclose(torch.tensor([x, -y]).double() / 40, row, atol=1e-3):
                wrong.append(f"clock {i}: hand of {letter} at {x}, {y}")
    heights = page.locator(".products-bars rect").evaluate_all(
        "bars => bars.map(b => [Number(b.getAttribute('height')), b.className.baseVal])"
    )
    for i, (high, sign) in enumerate(heights):
        length = (1 if sign == "positive" else -1) * high / 40
        if abs(length - added[i]) > 0.021:  # a bar has at least 0.8 pixels
            wrong.append(f"bar {i}: {length}")
    return wrong + wrong_mark(page, p - q, added.sum().item())


def wrong_mark(page: Page, distance: int, product: float) -> list[str]:
    """Check the dot: it is on the curve, above its distance, beside its value."""
    points, dot, said, wide = page.evaluate(
        """() => {
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
    )
    across = torch.linspace(26, wide - 8, 399, dtype=torch.float64)  # -199 … 199
    on = points[distance + 199]
    near = abs(on[0] - dot[0]) < 0.2 and abs(on[1] - dot[1]) < 0.2
    products = (TABLE[:1] @ TABLE.T)[0]
    every = torch.cat((products.flip(0), products[1:]))  # distances -199 … 199
    heights = torch.tensor([y for _, y in points], dtype=torch.float64)
    curve = 124 - every / 32 * 112  # pixels: 0 and 32
    right = near and torch.allclose(heights, curve, atol=0.06)
    places = torch.tensor([x for x, _ in points], dtype=torch.float64)
    right = right and torch.allclose(places, across, atol=0.06)
    return [] if right and abs(number(said) - product) < 5.01e-5 else [f"mark: {said}"]


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_it_starts_with_a_distance_of_the_chapter(live_page: Open) -> None:
    page = ready(live_page(figure("products")))
    text = (ROOT / "docs/chapters/positions.md").read_text("utf-8")
    printed = re.search(r"^distance +5: +([\d.]+)", text, re.MULTILINE)
    assert printed
    assert page.locator(".products-equation b").first.inner_text() == printed[1]
    assert not wrong_products(page)


def test_keys_and_buttons(live_page: Open) -> None:
    page = ready(live_page(figure("products")))
    product = page.locator(".products-equation b").first
    before = product.inner_text()
    for _ in range(4):
        page.get_by_role("button", name="Both 10 to the left").click()
        assert product.inner_text() == before  # it stays, also at the end of the line
        assert not wrong_products(page)
    assert handle(page, "q").get_attribute("aria-valuetext") == "0"
    page.get_by_role("button", name="Swap").click()
    assert product.inner_text() == before
    page.get_by_role("button", name="Both 10 to the right").click()
    assert not wrong_products(page)
    for name, key in (("p", "ArrowLeft"), ("q", "Shift+ArrowUp"), ("p", "ArrowDown")):
        for _ in range(7):
            handle(page, name).press(key)
        assert not wrong_products(page)
    assert product.inner_text() != before


@pytest.mark.parametrize("phone", [False, True])
def test_both_are_dragged(live_page: Open, phone: bool) -> None:
    page = ready(live_page(figure("products"), phone=phone))
    handle(page, "p").scroll_into_view_if_needed()
    for name, by in (("p", 130), ("q", 60), ("p", -90), ("q", 2000)):
        box = handle(page, name).locator(".knob").bounding_box()
        assert box
        x, y = box["x"] + 13, box["y"] + 13
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + by, y, steps=4)
        page.mouse.up()
        assert not wrong_products(page)
    assert handle(page, "q").get_attribute("aria-valuetext") == "199"


FAULTS = (
    ("pieces/positions/table.js", "(-2 * i) / width", "(-2 * i) / (width + 1)"),
    ("pieces/products.js", "tableRow(q, WIDTH)]", "tableRow(q + 1, WIDTH)]"),
    ("pieces/products.js", "each.update(p *", "each.update(q *"),
    ("pieces/products.js", "SHOWN[place]", "SHOWN[3 - place]"),
    ("pieces/products/curve.js", "(d + reach)", "(d + reach + 1)"),
    ("pieces/products/bars.js", "values[i]", "values[i + 1]"),
)


@pytest.mark.parametrize(("file", "old", "new"), FAULTS)
def test_a_planted_fault_is_caught(
    live_page: Open, live_site: LiveSite, file: str, old: str, new: str
) -> None:
    plant(live_site, file, old, new)
    page = ready(live_page(figure("products")))
    assert wrong_products(page)


def test_accessible(live_page: Open) -> None:
    assert not audit(live_page, "products")
    page = ready(live_page(figure("products")))
    assert keys_reach(page) == [
        "position q",
        "position p",
        "Both 10 to the left",
        "Both 10 to the right",
        "Swap p and q",
        "Numbers as a table",
    ]
