"""The pieces of the chapter on attention show what the package computes."""

import random
import re
from math import sqrt

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page

import live_driving as live
from live_serving import DOCS
from tformer import attention_weights

PIECE = "attention"
NAMES = ("query: it", "key: cat", "key: sat", "key: because")
TEMPERATURES = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)
VALUE = torch.eye(3, 4, dtype=torch.float64) * 10
STEPS = "The steps from scores to weights"
MEAN = "The values, and their mean"
DRAWN = """piece => {
  const all = (name, read) => [...piece.querySelectorAll(name)].map(read)
  return [all(".attention-bar", bar => parseFloat(bar.style.width)),
          all(".attention-tip .tip", dot => dot.r.baseVal.value),
          all(".attention-levels path", path => path.getAttribute("d")),
          piece.querySelector(".attention-plane").viewBox.baseVal.height]
}"""


def handle(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name, exact=True)


def vectors(page: Page) -> torch.Tensor:
    """Return query and keys (4, 4), in the places of the chapter, as handles tell."""
    rows = []
    for name in NAMES:
        said = handle(page, name).get_attribute("aria-valuetext") or ""
        living, noun = map(
            live.number, re.fullmatch(r"living (\S+), noun (\S+)", said).groups()
        )
        assert handle(page, name).get_attribute("aria-valuenow") == f"{living:g}"
        rows.append([living, 0, noun, 0])
    rows[2][1] = rows[3][3] = 1  # sat is a verb, because a link: the query asks neither
    return torch.tensor(rows, dtype=torch.float64)


def check(page: Page) -> None:
    """Compare each number that is shown with the package's."""
    query, keys = vectors(page).split([1, 3])
    temperature = float(live.shown(page, "temperature"))
    divide = page.get_by_role("switch").is_checked()
    scale = (1 / sqrt(4) if divide else 1) / temperature
    weights = attention_weights(query[None, None], keys[None, None], scale=scale)
    weights = weights.flatten()
    scores = (query @ keys.T)[0]
    heading, *rows = live.table(page, STEPS)
    by = [*(["√4"] if divide else []), *([f"{temperature:g}"] * (temperature != 1))]
    assert heading[2] == f"÷ {' · '.join(by) or '1'}"
    assert [row[0] for row in rows] == ["cat", "sat", "because"]
    steps = (scores, scores * scale, (scores * scale).exp(), weights)
    for row, expected in zip(rows, zip(*steps, strict=True), strict=True):
        for text, value in zip(row[1:], expected, strict=True):
            assert live.same(text, value.item())
    *values, new = live.table(page, MEAN)
    assert [row[0] for row in values] == [f"value of {row[0]}" for row in rows]
    assert [[float(x) for x in row[1:]] for row in values] == VALUE.tolist()
    for text, value in zip(new[1:], weights @ VALUE, strict=True):
        assert live.same(text, value.item())
    bars, dots, paths, high = page.locator("live-attention").evaluate(DRAWN)
    assert np.allclose(bars, 100 * weights, atol=1e-3)
    areas = (np.array(dots[:3]) / 18) ** 2
    assert np.allclose(areas, weights.clamp(min=1 / 36), atol=1e-6)
    check_lines(paths, high / 2, query[0, [0, 2]] * scale)


def check_lines(paths: list[str], middle: float, query: torch.Tensor) -> None:
    """Check that the divided score is a whole number all along each thin line."""
    unit = (middle - 14) / 3  # pixels: the plane ends at 3, 14 pixels from the edge
    found = set()
    for path in paths:
        x1, y1, x2, y2 = (float(x) for x in re.findall(r"-?[\d.e-]+", path))
        for x, y in ((x1, y1), (x2, y2)):
            score = (query[0] * (x - middle) + query[1] * (middle - y)).item() / unit
            assert abs(score - round(score)) <= 1e-6
        found.add(round(score))
    assert not found or found == {0, *range(min(found), max(found) + 1)}


def stir(page: Page, seed: int) -> None:
    """Press keys, and move what can be moved."""
    chance = random.Random(seed)
    for name in NAMES:
        for _ in range(6):
            arrow = chance.choice(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"])
            handle(page, name).press(chance.choice(["", "Shift+"]) + arrow)
    live.slide(page, "temperature", chance.randrange(len(TEMPERATURES)))
    if chance.random() < 0.5:
        page.get_by_role("switch").click()


@live.IN_BOTH
def test_it_starts_with_the_smallest_case_of_the_chapter(page):
    text = (DOCS / "chapters/attention.md").read_text("utf-8")
    begin = text.index("query = torch.tensor")
    names = {"torch": torch}
    exec(text[begin : text.index("```", begin)], names)
    chapter = torch.cat([names["query"], names["key"]])
    assert vectors(page).tolist() == chapter.tolist()
    check(page)


@pytest.mark.nightly
def test_keys_and_sliders(page):
    before = vectors(page)
    for seed in range(4):
        stir(page, seed)
        check(page)
    assert not torch.equal(vectors(page), before)
    page.get_by_role("button", name="Start again").click()
    assert torch.equal(vectors(page), before)
    check(page)


def centre(there: Locator) -> tuple[float, float]:
    box = there.locator(".tip").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mouse_drags_the_query(page):
    x, y = centre(handle(page, NAMES[0]))
    zero, unit = centre(handle(page, NAMES[3])), centre(handle(page, NAMES[2]))
    one = unit[0] - zero[0]  # pixels: sat is 1 to the right of because
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 3 * one, y + one, steps=5)
    page.mouse.up()
    assert vectors(page)[0, [0, 2]].tolist() == pytest.approx([-1, 1])
    there = (x - 3 * one, y + one)
    assert centre(handle(page, NAMES[0])) == pytest.approx(there, abs=1)
    check(page)
    page.mouse.move(10, 10)  # it was let go
    assert vectors(page)[0, 0] == -1


def test_a_finger_drags_a_key_and_the_plane_has_an_end(live_page):
    page = live.ready(live_page(live.figure(PIECE), phone=True))
    handle(page, NAMES[1]).scroll_into_view_if_needed()
    x, y = centre(handle(page, NAMES[1]))
    touch = page.context.new_cdp_session(page)
    for kind, by in (("Start", [0]), ("Move", [30]), ("Move", [900]), ("End", [])):
        points = [{"x": x + at, "y": y} for at in by]
        event = {"type": f"touch{kind}", "touchPoints": points}
        touch.send("Input.dispatchTouchEvent", event)
    assert vectors(page)[1].tolist() == [3, 0, 1, 0]
    check(page)


def check_elsewhere(page: Page) -> None:
    for _ in range(4):
        handle(page, NAMES[0]).press("Shift+ArrowUp")
        handle(page, NAMES[2]).press("Shift+ArrowUp")
    live.slide(page, "temperature", 1)
    check(page)


test_a_planted_fault_is_seen = live.planted(
    "attention",
    check_elsewhere,
    ("pieces/attention.js", "score / divisor", "score / divisor * 1.001"),
    ("pieces/attention.js", "query.x * at.x", "query.y * at.x"),
    ("pieces/attention/steps.js", "result.weights[i], 3", "result.weights[2 - i], 3"),
    ("pieces/attention.js", "Math.sqrt(WIDTH) : 1", "WIDTH : 1"),
    ("pieces/attention.js", "keys[i].value", "keys[(i + 1) % 3].value"),
)
