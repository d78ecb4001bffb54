"""The clocks of the chapter on positions show the rows of the package's table."""

import re
from math import cos, pi, sin

import pytest
from playwright.sync_api import Page

import live_driving as live
from tformer.nn.positions import sinusoidal_positions

PIECE = "positions"
WORDS = ("dog", "bites", "man")
HANDS = """clocks => clocks.map(clock => {
  const ends = clock.querySelector(".positions-hand").getAttribute("d")
    .match(/-?[\\d.e-]+/g).map(Number)
  const tip = clock.querySelectorAll(".positions-tip")[1]
  return [...ends, Number(tip.getAttribute("cx")), Number(tip.getAttribute("cy"))]
})"""


def check(page: Page, width: int, position: int) -> None:
    """Compare the cells, the hands and the table with the package's row."""
    word = f" ({WORDS[position]})" if position < len(WORDS) else ""
    assert live.shown(page, "position") == f"{position}{word}"
    wanted = sinusoidal_positions(position + 1, width)[position].tolist()
    names = page.locator(".positions-row th").all_inner_texts()
    assert names == ["sin", "cos"] * (width // 2)
    cells = page.locator(".positions-row td").all_inner_texts()
    assert [live.number(cell) for cell in cells] == pytest.approx(wanted, abs=5.01e-5)
    hands = page.locator(".positions-clock").evaluate_all(HANDS)
    rows = live.table(page, "The clocks at this position")[1:]
    turns = page.locator(".positions-clock p").all_inner_texts()
    for i, (hand, row, text) in enumerate(zip(hands, rows, turns, strict=True)):
        speed = 10000 ** (-2 * i / width)
        pair = wanted[2 * i : 2 * i + 2]
        x0, y0, x, y, *tip = hand
        assert (x0, y0) == (0, 0)
        assert [x / 39, -y / 39] == pytest.approx(pair, abs=1e-3)  # a hand is as long
        assert [x, y] == tip
        expected = [i, position * speed, *pair, 2 * pi / speed]
        for cell, value, off in zip(
            row, expected, (0, 5e-3, 5e-5, 5e-5, 0.5), strict=True
        ):
            assert abs(live.number(cell) - value) <= off * 1.01
        (turn,) = re.findall(r"a turn in ([\d,]+) places", text)
        assert abs(live.number(turn) - 2 * pi / speed) <= 0.51


@live.IN_BOTH
def test_it_starts_at_the_third_word(page):
    check(page, 8, 2)


@pytest.mark.parametrize("width", [4, 8])
def test_all_positions_that_are_tried(live_page, width):
    page = live.ready(live_page(live.figure(PIECE), phone=width == 4))
    page.get_by_label(str(width), exact=True).check()
    for position in (0, 1, 6, 7, 44, 63, 199, 200):
        live.slide(page, "position", position)
        check(page, width, position)
    page.get_by_label("position", exact=True).press("ArrowLeft")
    check(page, width, 199)


@pytest.mark.parametrize(("clock", "speed"), [(0, 1.0), (1, 0.1), (2, 0.01)])
def test_a_hand_is_turned(page, clock, speed):
    live.slide(page, "position", 10)
    box = page.locator(".positions-clock svg").nth(clock).bounding_box()
    x, y, long = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 40
    start, turned = 10 * speed, 0.0
    page.mouse.move(x + long * sin(start), y - long * cos(start))
    page.mouse.down()
    while turned < 1.3:  # radians, as a hand does it: by and by
        turned += 0.1
        page.mouse.move(x + long * sin(start + turned), y - long * cos(start + turned))
    page.mouse.up()
    position = int(live.shown(page, "position").split()[0])
    assert abs(position - (10 + turned / speed)) <= 1 + 0.01 / speed
    check(page, 8, position)


@pytest.mark.nightly
def test_play_steps_until_it_is_paused(page):
    live.slide(page, "position", 197)
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # the end stops it
    check(page, 8, 200)


def check_at_23(page: Page) -> None:
    live.slide(page, "position", 23)
    check(page, 8, 23)


TABLE, CLOCK = "pieces/positions/table.js", "pieces/positions/clock.js"
test_a_planted_fault_is_seen = live.planted(
    "positions",
    check_at_23,
    (TABLE, "(-2 * i) / width", "(-2 * i) / (width - 2)"),
    (TABLE, "column % 2 ?", "column % 2 === 0 ?"),
    (TABLE, "const angle = position", "const angle = 1.001 * position"),
    ("pieces/positions.js", "tableRow(position,", "tableRow(position + 1,"),
    (CLOCK, "HAND * Math.sin(angle)", "HAND * Math.sin(-angle)"),
)
