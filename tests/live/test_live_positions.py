"""The clocks of the chapter on positions show the rows of the package's table."""

import re
from collections.abc import Callable
from math import cos, pi, sin

import pytest
from playwright.sync_api import Page

from live_driving import audit, figure, keys_reach, number, ready, shown, slide, table
from live_faults import plant
from live_serving import LiveSite
from tformer.nn.positions import sinusoidal_positions

Open = Callable[..., Page]
WORDS = ("dog", "bites", "man")
HANDS = """clocks => clocks.map(clock => {
  const [x0, y0, x, y] = clock.querySelector(".positions-hand").getAttribute("d")
    .match(/-?[\\d.e-]+/g).map(Number)
  const tip = clock.querySelectorAll(".positions-tip")[1]
  return [x, y, Number(tip.getAttribute("cx")), Number(tip.getAttribute("cy")), x0, y0]
})"""


def wrong_clocks(page: Page, width: int, position: int) -> list[str]:
    """Compare the cells, the hands and the table with the package's row."""
    said = shown(page, "position")
    word = f" ({WORDS[position]})" if position < len(WORDS) else ""
    wrong = [] if said == f"{position}{word}" else [said]
    wanted = sinusoidal_positions(position + 1, width)[position].tolist()
    cells = page.locator(".positions-row td").all_inner_texts()
    names = page.locator(".positions-row th").all_inner_texts()
    wrong += [str(names)] * (names != ["sin", "cos"] * (width // 2))
    values = [number(cell) for cell in cells]
    if len(values) != width:
        return [*wrong, f"{len(values)} cells"]
    wrong += [
        f"column {i}: {x}, not {y:.6f}"
        for i, (x, y) in enumerate(zip(values, wanted, strict=True))
        if abs(x - y) > 5.01e-5
    ]
    hands = page.locator(".positions-clock").evaluate_all(HANDS)
    rows = table(page, "The clocks at this position")[1:]
    turns = page.locator(".positions-clock p").all_inner_texts()
    for i, (hand, row) in enumerate(zip(hands, rows, strict=True)):
        speed = 10000 ** (-2 * i / width)
        right, up = hand[0] / 39, -hand[1] / 39  # the length of a hand
        if abs(right - wanted[2 * i]) + abs(up - wanted[2 * i + 1]) > 1e-3:
            wrong.append(f"hand {i}: {right:.4f}, {up:.4f}")
        if hand[:2] != hand[2:4] or hand[4:] != [0, 0]:
            wrong.append(f"hand {i} has its tip elsewhere: {hand}")
        told = [number(x) for x in row]
        expected = [i, position * speed, *wanted[2 * i : 2 * i + 2], 2 * pi / speed]
        for x, y, off in zip(told, expected, (0, 5e-3, 5e-5, 5e-5, 0.5), strict=True):
            if abs(x - y) > off * 1.01:
                wrong.append(f"clock {i}: {x}, not {y}")
        found = re.search(r"a turn in ([\d,]+) places", turns[i])
        if not found or abs(number(found[1]) - 2 * pi / speed) > 0.51:
            wrong.append(turns[i])
    return wrong


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_it_starts_at_the_third_word(live_page: Open) -> None:
    page = ready(live_page(figure("positions")))
    assert not wrong_clocks(page, 8, 2)


def test_the_row_that_the_chapter_computes_by_hand(live_page: Open) -> None:
    page = ready(live_page(figure("positions")))
    page.get_by_label("4", exact=True).check()
    slide(page, "position", 1)
    cells = page.locator(".positions-row td").all_inner_texts()
    assert cells == ["0.8415", "0.5403", "0.0100", "1.0000"]
    assert not wrong_clocks(page, 4, 1)


@pytest.mark.parametrize("width", [4, 8])
def test_all_positions_that_are_tried(live_page: Open, width: int) -> None:
    page = ready(live_page(figure("positions"), phone=width == 4))
    page.get_by_label(str(width), exact=True).check()
    for position in (0, 1, 6, 7, 44, 63, 199, 200):
        slide(page, "position", position)
        assert not wrong_clocks(page, width, position)
    page.get_by_label("position", exact=True).press("ArrowLeft")
    assert not wrong_clocks(page, width, 199)


@pytest.mark.parametrize(("clock", "speed"), [(0, 1.0), (1, 0.1), (2, 0.01)])
def test_a_hand_is_turned(live_page: Open, clock: int, speed: float) -> None:
    page = ready(live_page(figure("positions")))
    slide(page, "position", 10)
    box = page.locator(".positions-clock svg").nth(clock).bounding_box()
    assert box
    x, y, long = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 40
    start, turned = 10 * speed, 0.0
    page.mouse.move(x + long * sin(start), y - long * cos(start))
    page.mouse.down()
    while turned < 1.3:  # radians, as a hand does it: by and by
        turned += 0.1
        page.mouse.move(x + long * sin(start + turned), y - long * cos(start + turned))
    page.mouse.up()
    position = int(shown(page, "position").split()[0])
    assert abs(position - (10 + turned / speed)) <= 1 + 0.01 / speed
    assert not wrong_clocks(page, 8, position)


def test_play_steps_until_it_is_paused(live_page: Open) -> None:
    page = ready(live_page(figure("positions")))
    slide(page, "position", 197)
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # the end stops it
    assert not wrong_clocks(page, 8, 200)


TABLE = "pieces/positions/table.js"
FAULTS = (
    (TABLE, "(-2 * i) / width", "(-2 * i) / (width - 2)"),
    (TABLE, "column % 2 ?", "column % 2 === 0 ?"),
    (TABLE, "const angle = position", "const angle = 1.001 * position"),
    (
        "pieces/positions.js",
        "tableRow(position, width)",
        "tableRow(position + 1, width)",
    ),
    ("pieces/positions/clock.js", "HAND * Math.sin(angle)", "HAND * Math.sin(-angle)"),
)


@pytest.mark.parametrize(("file", "old", "new"), FAULTS)
def test_a_planted_fault_is_caught(
    live_page: Open, live_site: LiveSite, file: str, old: str, new: str
) -> None:
    plant(live_site, file, old, new)
    page = ready(live_page(figure("positions")))
    slide(page, "position", 23)
    assert wrong_clocks(page, 8, 23)


def test_accessible(live_page: Open) -> None:
    assert not audit(live_page, "positions")
    page = ready(live_page(figure("positions")))
    assert keys_reach(page) == ["position", "Play", "8", "Numbers as a table"]
