"""The piece of the chapter on masks permits, and reads on, what the package says."""

import random
import re

import pytest
import torch
from playwright.sync_api import Locator, Page

import live_driving as live
from tformer.nn import attention_weights, causal_mask, combine_masks, length_mask

PIECE = "masks"
SIZE = 8
PADDING = length_mask(torch.tensor([6]), SIZE)[0, 0].expand(SIZE, SIZE)
WINDOW = causal_mask(SIZE, window=3)
PRESETS = {
    "causal": causal_mask(SIZE),
    "window of 3": WINDOW,
    "padding": PADDING,
    "window and padding": combine_masks(WINDOW, PADDING),
}


def cell(page: Page, query: int, key: int) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^query {query}, key {key}\b"))


def check(page: Page, mask: torch.Tensor = WINDOW) -> None:
    """Compare what is shown with this mask, and with what the package makes of it."""
    two = (mask.int() @ mask.int()) > 0
    told = page.locator(".masks-grid button").evaluate_all(
        "all => all.map(b => [b.ariaPressed, b.ariaLabel, b.innerText])"
    )
    for place, (pressed, name, text) in enumerate(told):
        i, j = divmod(place, SIZE)
        assert pressed == str(mask[i, j].item()).lower()
        assert (text == "2") == (two & ~mask)[i, j], name
        later = ", read in 2 layers" if text == "2" else ""
        assert name == f"query {i}, key {j}{later}"
    query = torch.zeros(1, 1, SIZE, 1)
    weights = attention_weights(query, query, mask)[0, 0]
    for row, text in zip(
        weights, page.locator("td.masks-weight").all_inner_texts(), strict=True
    ):
        if text == "all 0":
            assert not row.any()
        else:
            count, value = text.split(" × ")
            assert int(count) == (row > 0).sum()
            assert live.same(value, row.max().item())
    assert page.locator(".masks-counts").inner_text() == (
        f"One layer: {mask.sum()} of 64 pairs. Two layers: {two.sum()} of 64 pairs."
    )
    for i, *cells in live.table(page, "What each query reads")[1:]:
        for text, which in zip(cells, (mask, two), strict=True):
            names = [] if text == "nothing" else map(int, text.split(", "))
            assert list(names) == which[int(i)].nonzero().flatten().tolist()
    check_path(page, mask)


def check_path(page: Page, mask: torch.Tensor) -> None:
    """Check the sentence about the chosen pair, and the line that is drawn for it."""
    chosen = page.locator(".masks-grid button.chosen").get_attribute("aria-label") or ""
    i, j = map(int, re.match(r"query (\d), key (\d)", chosen).groups())
    said = page.locator(".masks-path").inner_text()
    between = [k for k in range(SIZE) if mask[i, k] and mask[k, j]]
    drawn = page.locator(".masks-edge.marked").count()
    if not mask[i].any():
        assert (
            said == f"Query {i} may look at nothing: its weights and its output are 0."
        )
        assert drawn == 0
    elif not between:
        assert ("in one layer, but not in two" in said) == mask[i, j]
        assert "→" not in said
        assert drawn == 0
    else:
        pattern = rf"{j} → (\d) → {i}(?:, and by ([\d, ]+))?\.$"
        first, others = re.search(pattern, said).groups(default="")
        by = [int(first), *map(int, filter(None, others.split(", ")))]
        assert sorted(by) == between
        assert ("in one layer" in said) == mask[i, j]
        nodes = page.locator(".masks-node.marked").all_text_contents()
        assert drawn == 2
        assert sorted(map(int, nodes)) == sorted([i, by[0], j])


def test_the_four_masks_of_the_chapter(page):
    for name, mask in PRESETS.items():
        live.choose(page, name)
        check(page, mask)


@pytest.mark.nightly
def test_any_cell_is_toggled_by_mouse(page):
    mask = WINDOW.clone()
    check(page, mask)
    chance = random.Random(0)
    for _ in range(8):
        for _ in range(3):
            i, j = chance.randrange(SIZE), chance.randrange(SIZE)
            cell(page, i, j).click()
            mask[i, j] = ~mask[i, j]
        check(page, mask)
    assert page.locator("input:checked").count() == 0  # no preset any more


def test_the_keyboard_alone(page):
    cell(page, 7, 3).focus()
    for arrow, (i, j) in (
        ("Right", (7, 4)),
        ("Right", (7, 5)),
        ("Down", (7, 5)),
        ("Up", (6, 5)),
        ("Left", (6, 4)),
    ):
        page.keyboard.press(f"Arrow{arrow}")
        assert cell(page, i, j).evaluate("b => b === document.activeElement")
        check(page)
    page.keyboard.press("Space")
    mask = WINDOW.clone()
    mask[6, 4] = False
    check(page, mask)


def test_a_query_that_sees_nothing_has_weights_of_0(page):
    mask = WINDOW.clone()
    for key in range(3):
        cell(page, 2, key).click()
    mask[2] = False
    check(page, mask)
    assert page.locator("td.masks-weight").nth(2).inner_text() == "all 0"


@live.IN_BOTH
def test_one_hidden_cell_cuts_the_path(page):
    path = page.locator(".masks-path")
    assert path.inner_text() == "Token 3 reaches query 7 in two layers: 3 → 5 → 7."
    cell(page, 7, 5).click()
    cell(page, 7, 3).hover()
    assert path.inner_text().startswith("Token 3 does not reach query 7")


test_a_planted_fault_is_seen = live.planted(
    "masks",
    check,
    ("formulas/window.js", "key > query - window", "key >= query - window"),
    ("pieces/masks.js", "mask[i][k] && mask[k][j]", "mask[k][i] && mask[k][j]"),
    ("pieces/masks/grid.js", "given.row(i)", "given.row(0)"),
    ("pieces/masks/grid.js", "two[i][j] && !mask", "two[j][i] && !mask"),
    ("engine/attention.js", "attnMask ? maskedFill", "false ? maskedFill"),
)
