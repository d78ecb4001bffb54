"""The piece of the chapter on heads moves each number where the package moves it."""

from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Page
from torch import Tensor

from live_driving import audit, figure, keys_reach, ready, shown, slide, still, table
from live_faults import plant
from live_serving import LiveSite
from tformer.nn.heads import merge_heads, split_heads

Open = Callable[..., Page]
T = 3
STEPS = ("1 tokens", "2 heads", "3 back again")
COLOURS = ("blue", "orange", "green", "purple", "red", "brown", "pink", "gray")


def expected(width: int, heads: int, step: str, split: bool, merge: bool) -> Tensor:
    """Return what torch makes of the numbers 0, 1, …: (T, D), or (H, T, Dh)."""
    tokens = torch.arange(T * width).view(1, T, width)
    if step == STEPS[0]:
        return tokens[0]
    inside = (
        split_heads(tokens, heads)
        if split
        else tokens.view(1, heads, T, width // heads)
    )
    if step == STEPS[1]:
        return inside[0]
    return (merge_heads(inside) if merge else inside.reshape(1, T, width))[0]


def wrong_cells(page: Page, width: int, heads: int) -> list[str]:
    """Compare the picture, the table and the shape with torch's."""
    [step] = [name for name in STEPS if page.get_by_label(name).is_checked()]
    splits, merges = (
        switch.is_checked() for switch in page.get_by_role("switch").all()
    )
    wanted = expected(width, heads, step, splits, merges)
    wrong = []
    shape = tuple(wanted.shape)
    axes = "(H, T, Dh)" if step == STEPS[1] else "(T, D)"
    if (said := page.locator(".heads-shape").inner_text()) != f"{axes} = {shape}":
        wrong.append(said)
    rows = [
        [int(x) for x in row[1:]] for row in table(page, "Where each number is")[1:]
    ]
    if rows != wanted.reshape(-1, wanted.shape[-1]).tolist():
        wrong.append(f"table: {rows}")
    # As one sees it: rows from top to bottom, heads beside each other.
    cells = (
        still(page)
        .locator(".heads-cell")
        .evaluate_all(
            """cells => cells.map(cell => {
          const box = cell.querySelector("rect").getBoundingClientRect()
          return [Math.round(box.y), box.x, Number(cell.textContent), cell.classList[1],
                  cell.classList.contains("lost")]
        })"""
        )
    )
    seen = torch.tensor([number for _, _, number, _, _ in sorted(cells)])
    picture = wanted.transpose(0, 1) if step == STEPS[1] else wanted
    if not torch.equal(seen.view(T, width), picture.reshape(T, width)):
        wrong.append(f"picture: {seen.tolist()}")
    lost = {number for *_, number, _, is_lost in cells if is_lost}
    home = torch.arange(T * width).view(T, width)
    gone = set(wanted[wanted != home].tolist()) if step != STEPS[1] else set()
    if lost != gone:
        wrong.append(f"marked as lost: {lost}, and not {gone}")
    owners = {number: colour for _, _, number, colour, _ in cells}
    for number, colour in owners.items():
        if colour != COLOURS[number % width // (width // heads) % len(COLOURS)]:
            wrong.append(f"{number} is {colour}")
    return wrong + wrong_verdict(page, step, wanted, width)


def wrong_verdict(page: Page, step: str, wanted: Tensor, width: int) -> list[str]:
    """Check the sentence below the picture."""
    said = page.locator(".heads-verdict").inner_text()
    home = torch.arange(T * width).view(T, width)
    if step == STEPS[1]:
        tokens = [sorted(set((row // width).tolist())) for row in wanted[0]]
        told = ", ".join(" and ".join(map(str, row)) for row in tokens)
        right = tokens == [[t] for t in range(T)]
        verdict = "one row a token" if right else "head 1 is a piece of the sentence"
        text = f"The rows of head 1 belong to tokens {told}: {verdict}."
    elif step == STEPS[2]:
        moved = int((wanted != home).sum())
        count = f"{moved} of {T * width} numbers are not where they were"
        text = (
            f"{count}: rows are no longer tokens."
            if moved
            else "Back again: every number is where it was."
        )
    else:
        return [said] * ("a row each" not in said)
    return [said] * (said != text)


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_it_starts_with_the_numbers_of_the_chapter(live_page: Open) -> None:
    page = ready(live_page(figure("heads")))
    rows = [row[1:] for row in table(page, "Where each number is")[1:]]
    assert rows[:3] == [["0", "1"], ["4", "5"], ["8", "9"]]
    assert not wrong_cells(page, 4, 2)
    # the chapter's wrong split, "What if one forgets the transpose?"
    page.get_by_label("transpose when splitting").click()
    rows = [row[1:] for row in table(page, "Where each number is")[1:]]
    assert rows[:3] == [["0", "1"], ["2", "3"], ["4", "5"]]
    assert not wrong_cells(page, 4, 2)


@pytest.mark.parametrize("width", [4, 8, 12])
def test_all_heads_and_both_ways(live_page: Open, width: int) -> None:
    page = ready(live_page(figure("heads"), phone=width == 12))
    page.get_by_label(str(width), exact=True).check()
    all_heads = [n for n in range(1, width + 1) if width % n == 0]
    for place, heads in enumerate(all_heads):
        slide(page, "heads, H", place)
        assert shown(page, "heads, H") == f"{heads} of width {width // heads}"
        page.get_by_label(STEPS[0]).check()
        assert not wrong_cells(page, width, heads)
        for split in (True, False):
            page.get_by_label("transpose when splitting").set_checked(split)
            page.get_by_label(STEPS[1]).check()
            assert not wrong_cells(page, width, heads)
            page.get_by_label(STEPS[2]).check()
            for merge in (True, False):
                page.get_by_label("transpose back when merging").set_checked(merge)
                assert not wrong_cells(page, width, heads)


def test_a_width_keeps_the_heads_that_divide_it(live_page: Open) -> None:
    page = ready(live_page(figure("heads")))
    page.get_by_label("8", exact=True).check()
    slide(page, "heads, H", 3)
    assert not wrong_cells(page, 8, 8)
    page.get_by_label("12", exact=True).check()  # 8 does not divide 12
    assert shown(page, "heads, H") == "2 of width 6"
    assert not wrong_cells(page, 12, 2)
    slide(page, "heads, H", 3)
    page.get_by_label("8", exact=True).check()
    assert not wrong_cells(page, 8, 4)


def test_cells_move_unless_the_reader_wants_none_to(live_page: Open) -> None:
    moving = "c => getComputedStyle(c).transitionDuration"
    for reduced, seconds in (("no-preference", "0.7s"), ("reduce", "0s")):
        page = ready(live_page(figure("heads"), reduced_motion=reduced))
        page.get_by_label(STEPS[0]).check()
        assert page.locator(".heads-cell").first.evaluate(moving) == seconds


DRAWING = "pieces/heads/drawing.js"
FAULTS = (
    ("pieces/heads.js", "+ head * Dh + i", "+ i * heads + head"),
    ("pieces/heads.js", "given[(head * T + t)", "given[(t * heads + head)"),
    (DRAWING, "text: n }", "text: n + 1 }"),
    (DRAWING, "(from % width) / Dh", "from / (Dh * tokens)"),
)


@pytest.mark.parametrize(("file", "old", "new"), FAULTS)
def test_a_planted_fault_is_caught(
    live_page: Open, live_site: LiveSite, file: str, old: str, new: str
) -> None:
    plant(live_site, file, old, new)
    page = ready(live_page(figure("heads")))
    found = wrong_cells(page, 4, 2)
    page.get_by_label(STEPS[2]).check()
    assert found + wrong_cells(page, 4, 2)


def test_accessible(live_page: Open) -> None:
    assert not audit(live_page, "heads", lambda page: page.get_by_label("12").check())
    page = ready(live_page(figure("heads")))
    assert keys_reach(page) == [
        "2 heads",
        "4",
        "heads, H",
        "transpose when splitting",
        "transpose back when merging",
        "Numbers as a table",
    ]
