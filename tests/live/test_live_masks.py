"""The piece of the chapter on masks permits, and reads on, what the package says."""

import random
import re
from collections.abc import Callable

import pytest
import torch
from playwright.sync_api import Locator, Page

from live_driving import audit, figure, keys_reach, ready, same, table
from live_faults import plant
from live_serving import LiveSite
from tformer.nn import attention_weights, causal_mask, combine_masks, length_mask

Open = Callable[..., Page]
SIZE = 8
PADDING = length_mask(torch.tensor([6]), SIZE)[0, 0].expand(SIZE, SIZE)
PRESETS = {
    "causal": causal_mask(SIZE),
    "window of 3": causal_mask(SIZE, window=3),
    "padding": PADDING,
    "window and padding": combine_masks(causal_mask(SIZE, window=3), PADDING),
}


def cell(page: Page, query: int, key: int) -> Locator:
    return page.get_by_role("button", name=re.compile(rf"^query {query}, key {key}\b"))


def pressed(page: Page) -> torch.Tensor:
    """Return the mask that the buttons tell (8, 8)."""
    told = page.locator(".masks-grid button").evaluate_all(
        "all => all.map(b => [b.ariaPressed, b.ariaLabel, b.innerText, b.className])"
    )
    assert len(told) == SIZE * SIZE
    for place, (_, name, text, _) in enumerate(told):
        later = ", read in 2 layers" if text == "2" else ""
        assert name == f"query {place // SIZE}, key {place % SIZE}{later}"
    return torch.tensor([state == "true" for state, *_ in told]).view(SIZE, SIZE)


def wrong_masks(page: Page, expected: torch.Tensor | None = None) -> list[str]:
    """Compare what is shown with the mask that is pressed, and with the package."""
    mask = pressed(page)
    if expected is not None and not torch.equal(mask, expected):
        return ["another mask"]
    two = (mask.int() @ mask.int()) > 0
    wrong = []
    marks = page.locator(".masks-grid button").all_inner_texts()
    later = torch.tensor([mark == "2" for mark in marks]).view(SIZE, SIZE)
    if not torch.equal(later, two & ~mask):
        wrong.append(f"marks of two layers: {later.nonzero().tolist()}")
    query = torch.zeros(1, 1, SIZE, 1)
    weights = attention_weights(query, query, mask)[0, 0]
    told = page.locator("td.masks-weight").all_inner_texts()
    for i, text in enumerate(told):
        found = re.fullmatch(r"(\d) × (\S+)|all 0", text)
        if not found:
            wrong.append(f"weights of {i}: {text}")
        elif found[1] is None:
            wrong += [f"weights of {i}: all 0"] * bool(weights[i].any())
        else:
            seen = weights[i][weights[i] > 0]
            if int(found[1]) != len(seen) or not same(found[2], seen[0].item()):
                wrong.append(f"weights of {i}: {text}")
    counts = page.locator(".masks-counts").inner_text()
    if counts != (
        f"One layer: {mask.sum()} of 64 pairs. Two layers: {two.sum()} of 64 pairs."
    ):
        wrong.append(counts)
    for row in table(page, "What each query reads")[1:]:
        i = int(row[0])
        for cell_text, which in zip(row[1:], (mask, two), strict=True):
            names = [] if cell_text == "nothing" else map(int, cell_text.split(", "))
            if list(names) != which[i].nonzero().flatten().tolist():
                wrong.append(f"row {i}: {cell_text}")
    return wrong + wrong_path(page, mask)


def wrong_path(page: Page, mask: torch.Tensor) -> list[str]:
    """Check the sentence about the chosen pair, and the line that is drawn for it."""
    chosen = page.locator(".masks-grid button.chosen").get_attribute("aria-label") or ""
    found = re.match(r"query (\d), key (\d)", chosen)
    assert found
    i, j = int(found[1]), int(found[2])
    said = page.locator(".masks-path").inner_text()
    between = [k for k in range(SIZE) if mask[i, k] and mask[k, j]]
    drawn = page.locator(".masks-edge.marked").count()
    if not mask[i].any():
        expected = f"Query {i} may look at nothing: its weights and its output are 0."
        return [said] * (said != expected or drawn != 0)
    if not between:
        direct = "in one layer, but not in two" in said
        return [said] * (direct != bool(mask[i, j]) or "→" in said or drawn != 0)
    path = re.search(rf"{j} → (\d) → {i}(?:, and by ([\d, ]+))?\.$", said)
    if not path:
        return [f"no path in: {said}"]
    by = [int(path[1]), *map(int, (path[2] or "").split(", ") if path[2] else [])]
    right = sorted(by) == between and ("in one layer" in said) == bool(mask[i, j])
    nodes = page.locator(".masks-node.marked").all_text_contents()
    right = right and drawn == 2 and sorted(map(int, nodes)) == sorted([i, by[0], j])
    return [] if right else [f"{said} between: {between}, nodes {nodes}"]


@pytest.mark.parametrize("name", PRESETS)
def test_the_four_masks_of_the_chapter(live_page: Open, name: str) -> None:
    page = ready(live_page(figure("masks")))
    page.get_by_label(name, exact=True).check()
    assert not wrong_masks(page, PRESETS[name])


@pytest.mark.parametrize("seed", range(3))
def test_any_cell_is_toggled_by_mouse(live_page: Open, seed: int) -> None:
    page = ready(live_page(figure("masks")))
    mask = PRESETS["window of 3"].clone()
    assert not wrong_masks(page, mask)
    chance = random.Random(seed)
    for _ in range(5):
        for _ in range(3):
            i, j = chance.randrange(SIZE), chance.randrange(SIZE)
            cell(page, i, j).click()
            mask[i, j] = ~mask[i, j]
        assert not wrong_masks(page, mask)
    assert page.locator("input:checked").count() == 0  # no preset any more


def test_the_keyboard_alone(live_page: Open) -> None:
    page = ready(live_page(figure("masks")))
    assert keys_reach(page) == [
        "window of 3",
        "query 7, key 3, read in 2 layers",
        "Numbers as a table",
    ]
    mask = PRESETS["window of 3"].clone()
    assert not wrong_masks(page, mask)  # which opens the table
    cell(page, 7, 3).focus()
    for press, (i, j) in (
        ("ArrowRight", (7, 4)),
        ("ArrowRight", (7, 5)),
        ("ArrowDown", (7, 5)),
        ("ArrowUp", (6, 5)),
        ("ArrowLeft", (6, 4)),
    ):
        page.keyboard.press(press)
        assert cell(page, i, j).evaluate("b => b === document.activeElement")
        assert not wrong_masks(page, mask)
    page.keyboard.press("Space")
    mask[6, 4] = False
    assert not wrong_masks(page, mask)


def test_a_query_that_sees_nothing_has_weights_of_0(live_page: Open) -> None:
    page = ready(live_page(figure("masks")))
    mask = PRESETS["window of 3"].clone()
    for key in range(3):
        cell(page, 2, key).click()
    mask[2] = False
    assert not wrong_masks(page, mask)
    assert page.locator("td.masks-weight").nth(2).inner_text() == "all 0"
    page.locator("p.live-said", has_text="may look at nothing").wait_for(
        state="attached"
    )


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_one_hidden_cell_cuts_the_path(live_page: Open) -> None:
    page = ready(live_page(figure("masks")))
    path = page.locator(".masks-path")
    assert path.inner_text() == "Token 3 reaches query 7 in two layers: 3 → 5 → 7."
    cell(page, 7, 5).click()
    cell(page, 7, 3).hover()
    assert path.inner_text().startswith("Token 3 does not reach query 7")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("pieces/masks.js", "j > i - width", "j >= i - width"),
        ("pieces/masks.js", "mask[i][k] && mask[k][j]", "mask[k][i] && mask[k][j]"),
        ("pieces/masks/grid.js", "given.row(i)", "given.row(0)"),
        ("pieces/masks/grid.js", "two[i][j] && !mask", "two[j][i] && !mask"),
        ("engine/attention.js", "attnMask ? maskedFill", "false ? maskedFill"),
    ],
)
def test_a_planted_fault_is_caught(
    live_page: Open, live_site: LiveSite, file: str, old: str, new: str
) -> None:
    plant(live_site, file, old, new)
    page = ready(live_page(figure("masks")))
    assert wrong_masks(page, PRESETS["window of 3"])


def test_accessible(live_page: Open) -> None:
    assert not audit(live_page, "masks", lambda page: cell(page, 0, 0).click())
