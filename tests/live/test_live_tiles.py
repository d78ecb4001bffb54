"""What is kept from tile to tile is what the package keeps in its loop over tiles."""

import re

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS
from tformer.nn.attention import attention_weights
from tformer.nn.tiles import Tiling, tiled_forward

PIECE = "tiles"
VALUES = (10.0, 20.0, 30.0, 40.0)
KEPT = "What is kept after each tile"
BARS = """() => [...document.querySelectorAll(".tiles-power")].map(
  (bar) => [bar.classList.contains("now"), Number(bar.getAttribute("height"))])"""


def state(page: Page) -> tuple[list[float], int, int, bool]:
    """Return the scores, the keys of a tile, the tiles read, whether sums shrink."""
    scores = [live.number(live.shown(page, f"score of key {i}")) for i in range(1, 5)]
    size = int(page.locator(".live-choice :checked").get_attribute("value") or "")
    read = len(live.table(page, KEPT)) - 2
    return scores, size, read, page.get_by_role("switch").is_checked()


def kept_after(scores: list[float], size: int) -> tuple[float, float, float]:
    """Read these keys as the package does, with a query of 1; m, l and o."""
    query = torch.ones(1, 1, 1, 1, 1, dtype=torch.float64)
    key = torch.tensor(scores, dtype=torch.float64).view(1, 1, 1, -1, 1)
    value = torch.tensor(VALUES[: len(scores)], dtype=torch.float64).view_as(key)
    how = Tiling(None, None, False, 1.0, None, 1, size)
    output, logsumexp = tiled_forward(query, key, value, how)
    m = max(scores)
    l = (logsumexp - m).exp().item()
    return m, l, output.item() * l


def check(page: Page) -> None:
    """Compare the table, the bars and the sentences with the package, sums shrunk."""
    scores, size, read, shrinks = state(page)
    assert shrinks
    _, first, *rows = live.table(page, KEPT)
    assert first == ["0", "−∞", "", "0.0000", "0.0000", ""]
    before = -torch.inf
    for tile, row in enumerate(rows, start=1):
        m, l, o = kept_after(scores[: tile * size], size)
        assert row[0] == str(tile)
        assert all(map(live.same, (row[1], *row[3:]), (m, l, o, o / l)))
        if tile > 1:
            assert live.same(row[2], torch.tensor(before - m).exp().item())
        before = m
    m, l, o = kept_after(scores[: read * size], size)
    said = page.locator("live-tiles .live-sentence").first.inner_text()
    numbers = re.match(r"Tile (\d): m = (\S+), ℓ = (\S+), o = (\S+?)\. ", said)
    assert numbers
    assert all(map(live.same, numbers.groups(), (read, m, l, o)))
    check_bars(page, scores, size, read)
    check_result(page, scores, o / l if read * size == 4 else None)


def check_bars(page: Page, scores: list[float], size: int, read: int) -> None:
    m = max(scores[: read * size])
    labels = page.locator("live-tiles .live-chart text.number").all_text_contents()
    bars = page.evaluate(BARS)
    for i, (label, (now, high)) in enumerate(zip(labels, bars, strict=True)):
        assert now == (i // size + 1 == read)
        if i >= read * size:
            assert (label, high) == ("?", 0)
            continue
        power = torch.tensor(scores[i] - m).exp().item()
        assert live.same(label, power)
        assert high == pytest.approx(86 * power, abs=0.01)  # 86 pixels for 1


def check_result(page: Page, scores: list[float], mean: float | None) -> None:
    """Compare what is said of all four keys with attention as the formula has it."""
    key = torch.tensor(scores, dtype=torch.float64).view(1, 1, 4, 1)
    weights = attention_weights(torch.ones_like(key[:, :, :1]), key, scale=1.0)
    wanted = (weights.flatten() @ torch.tensor(VALUES, dtype=torch.float64)).item()
    said = page.locator(".tiles-result").inner_text()
    if mean is None:
        assert live.same(said.removeprefix("All at once it would be ")[:-1], wanted)
        return
    numbers = re.fullmatch(
        r"Tile by tile: o / ℓ = (\S+)\. All at once: (\S+)\. The same\.", said
    )
    assert numbers
    assert all(map(live.same, numbers.groups(), (mean, wanted)))


@live.IN_BOTH
def test_it_steps_through_the_numbers_of_the_chapter(page):
    text = (DOCS / "chapters/tiles.md").read_text("utf-8")
    printed = re.findall(r"^after tile \d: m = (\d)  l = (\S+)  o = (\S+)$", text, re.M)
    assert len(printed) == 2
    check(page)
    live.press(page, "Next tile")
    check(page)
    rows = live.table(page, KEPT)[2:]
    assert [(m, l, o) for _, m, _, l, o, _ in rows] == printed
    assert "o / ℓ = 30.305356. All at once: 30.305356. The same." in (
        page.locator(".tiles-result").inner_text()
    )


@pytest.mark.by_day(3)
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("scores", [(1, 0, 3, 2), (-8, 8, -8, 8), (5, 5, -3, 5)])
def test_tiles_of_every_size(page, size, scores):
    for i, score in enumerate(scores, start=1):
        live.slide(page, f"score of key {i}", score)
    live.choose(page, str(size))
    live.press(page, "Back")
    live.press(page, "Back")
    assert len(live.table(page, KEPT)) == 2
    assert page.locator(".tiles-result").inner_text().startswith("All at once it would")
    for _ in range(4 // size):
        live.press(page, "Next tile")
        check(page)
    assert page.get_by_role("button", name="Next tile").is_disabled()


def test_sums_that_do_not_shrink_give_another_mean_where_the_maximum_grows(page):
    live.press(page, "Next tile")
    live.choose(page, "shrink the earlier sums", on=False)
    wrong = page.locator(".tiles-result")
    assert wrong.inner_text().endswith("Wrong: the sums are of two maxima.")
    m, l, o = kept_after([1, 0], 2)
    later = kept_after([3, 2], 2)
    new = (o + later[2] + 20 * later[1]) / (l + later[1])  # its values are 30 and 40
    said = re.match(r"Tile by tile: o / ℓ = (\S+)\. ", wrong.inner_text())
    assert said
    assert m < later[0]
    assert live.same(said[1], new)
    live.slide(page, "score of key 1", 3)  # the first tile has the largest: it hides
    assert wrong.inner_text().endswith("The same.")


def to_the_end(page: Page) -> None:
    live.choose(page, "1")
    for _ in range(3):
        check(page)
        live.press(page, "Next tile")
    check(page)


FORMULA = "formulas/online-softmax.js"
test_a_planted_fault_is_seen = live.planted(
    "tiles",
    to_the_end,
    (FORMULA, "Math.exp(before.m - m)", "Math.exp((before.m - m) / 2)"),
    (FORMULA, "o: shrink * before.o", "o: before.o"),
    (FORMULA, "mean + weight * values[i]", "mean + values[i]"),
    (FORMULA, "Math.max(before.m, ...scores)", "Math.max(...scores)"),
    ("pieces/tiles.js", "slice(tile + 1, read + 1)", "slice(tile, read + 1)"),
    ("pieces/tiles/drawing.js", "(power / most)", "(score / most)"),
)
