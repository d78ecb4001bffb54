"""The piece of the chapter on heads moves each number where the package moves it."""

import pytest
import torch
from playwright.sync_api import Page
from torch import Tensor

import live_driving as live
from tformer.nn.heads import merge_heads, split_heads

PIECE = "heads"
T = 3
STEPS = ("1 tokens", "2 heads", "3 back again")
SWITCHES = ("transpose when splitting", "transpose back when merging")
COLOURS = ("blue", "orange", "green", "purple", "red", "brown", "pink", "gray")
CELLS = """cells => cells.map(cell => {
  const box = cell.querySelector("rect").getBoundingClientRect()
  return [Math.round(box.y), box.x, Number(cell.textContent), cell.classList[1],
          cell.classList.contains("lost")]
})"""


def expected(width: int, heads: int, step: str, split: bool, merge: bool) -> Tensor:
    """Return what torch makes of the numbers 0, 1, …: (T, D), or (H, T, Dh)."""
    tokens = torch.arange(T * width).view(1, T, width)
    if step == STEPS[0]:
        return tokens[0]
    wrong = tokens.view(1, heads, T, width // heads)
    inside = split_heads(tokens, heads) if split else wrong
    if step == STEPS[1]:
        return inside[0]
    return (merge_heads(inside) if merge else inside.reshape(1, T, width))[0]


def check(page: Page, width: int = 4, heads: int = 2) -> None:
    """Compare the picture, the table and the shape with torch's."""
    [step] = [name for name in STEPS if page.get_by_label(name).is_checked()]
    switches = [page.get_by_label(name).is_checked() for name in SWITCHES]
    wanted = expected(width, heads, step, *switches)
    axes = "(H, T, Dh)" if step == STEPS[1] else "(T, D)"
    shape = page.locator(".heads-shape").inner_text()
    assert shape == f"{axes} = {tuple(wanted.shape)}"
    rows = live.table(page, "Where each number is")[1:]
    numbers = [[int(x) for x in row[1:]] for row in rows]
    assert numbers == wanted.reshape(-1, wanted.shape[-1]).tolist()
    # As one sees it: rows from top to bottom, heads beside each other.
    cells = sorted(live.still(page).locator(".heads-cell").evaluate_all(CELLS))
    picture = wanted.transpose(0, 1) if step == STEPS[1] else wanted
    seen = [number for _, _, number, _, _ in cells]
    assert seen == picture.flatten().tolist()
    home = torch.arange(T * width).view(T, width)
    moved = wanted[wanted != home].tolist() if step != STEPS[1] else []
    assert {number for *_, number, _, lost in cells if lost} == set(moved)
    for *_, number, colour, _ in cells:
        assert colour == COLOURS[number % width // (width // heads) % len(COLOURS)]
    said = page.locator(".heads-verdict").inner_text()
    if step == STEPS[0]:
        assert "a row each" in said
    elif step == STEPS[1]:
        tokens = [sorted(set((row // width).tolist())) for row in wanted[0]]
        told = ", ".join(" and ".join(map(str, row)) for row in tokens)
        right = tokens == [[t] for t in range(T)]
        verdict = "one row a token" if right else "head 1 is a piece of the sentence"
        assert said == f"The rows of head 1 belong to tokens {told}: {verdict}."
    else:
        assert said == (
            f"{len(moved)} of {T * width} numbers are not where they were: "
            "rows are no longer tokens."
            if moved
            else "Back again: every number is where it was."
        )


@live.IN_BOTH
def test_it_starts_with_the_numbers_of_the_chapter(page):
    rows = [row[1:] for row in live.table(page, "Where each number is")[1:]]
    assert rows[:3] == [["0", "1"], ["4", "5"], ["8", "9"]]
    check(page)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("width", [4, 8, 12])
def test_all_heads_and_both_ways(live_page, width):
    page = live.ready(live_page(live.figure(PIECE), phone=width == 12))
    page.get_by_label(str(width), exact=True).check()
    all_heads = [n for n in range(1, width + 1) if width % n == 0]
    for place, heads in enumerate(all_heads):
        live.slide(page, "heads, H", place)
        assert live.shown(page, "heads, H") == f"{heads} of width {width // heads}"
        live.choose(page, STEPS[0])
        check(page, width, heads)
        for split in (True, False):
            live.choose(page, SWITCHES[0], split)
            live.choose(page, STEPS[1])
            check(page, width, heads)
            live.choose(page, STEPS[2])
            for merge in (True, False):
                live.choose(page, SWITCHES[1], merge)
                check(page, width, heads)


def test_a_width_keeps_the_heads_that_divide_it(page):
    live.choose(page, "8")
    live.slide(page, "heads, H", 3)
    check(page, 8, 8)
    live.choose(page, "12")  # 8 does not divide 12
    assert live.shown(page, "heads, H") == "2 of width 6"
    check(page, 12, 2)
    live.slide(page, "heads, H", 3)
    live.choose(page, "8")
    check(page, 8, 4)


def test_cells_move_unless_the_reader_wants_none_to(live_page):
    moving = "c => getComputedStyle(c).transitionDuration"
    for reduced, seconds in (("no-preference", "0.7s"), ("reduce", "0s")):
        page = live.ready(live_page(live.figure(PIECE), reduced_motion=reduced))
        live.choose(page, STEPS[0])
        assert page.locator(".heads-cell").first.evaluate(moving) == seconds


def check_both(page: Page) -> None:
    check(page)
    live.choose(page, STEPS[2])
    check(page)


DRAWING = "pieces/heads/drawing.js"
test_a_planted_fault_is_seen = live.planted(
    "heads",
    check_both,
    ("pieces/heads.js", "+ head * Dh + i", "+ i * heads + head"),
    ("pieces/heads.js", "given[(head * T + t)", "given[(t * heads + head)"),
    (DRAWING, "text: n }", "text: n + 1 }"),
    (DRAWING, "(from % width) / Dh", "from / (Dh * tokens)"),
)
