"""The piece on residual connections shows the numbers of the chapter's network."""

import re
from functools import cache
from math import log10
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, expect
from torch import nn

import live_driving as live
from live_serving import DOCS
from tformer import FeedForward, LayerNorm

PIECE = "residual"
CHAPTER = (DOCS / "chapters/residuals.md").read_text("utf-8")
FENCES = re.findall(r"```python\n(.*?)```", CHAPTER, re.DOTALL)
TRIED, EACH = "What you tried", "Signal and gradient after each layer"
NAMES = {  # residual, norm: what the piece calls it; the label of the norm
    (False, "none"): "nothing",
    (False, "after the sum"): "norm only",
    (False, "before the part"): "norm before only",
    (True, "none"): "residual only",
    (True, "after the sum"): "post-norm",
    (True, "before the part"): "pre-norm",
}
Measured = tuple[list[float], list[float], float]  # signals, gradients, alike


@cache
def chapter_functions() -> dict[str, Any]:
    """Run the blocks of the chapter that define `SubLayer`, `stack` and `alike`."""
    layer, block = (
        next(code for code in FENCES if code.startswith(beginning))
        for beginning in ("class SubLayer(", "def stack(")
    )
    names = {"torch": torch, "nn": nn}
    names |= {"FeedForward": FeedForward, "LayerNorm": LayerNorm}
    exec(layer, names)
    # The chapter has no norm before a part without a residual: the piece has.
    more = '        "norm before only": lambda x, part: part(post.norm(x)),\n'
    code = block.partition("\n\nkinds = ")[0]
    exec(code.replace("    wraps = {\n", "    wraps = {\n" + more), names)
    return names


@cache
def measured(kind: str, strong: bool, depth: int) -> Measured:
    signals, gradients = chapter_functions()["stack"](kind, strong, depth=depth)
    sizes = [[t.std().item() for t in ts] for ts in (signals, gradients)]
    return sizes[0], sizes[1], chapter_functions()["alike"](signals[-1]).item()


def choose(page: Page, residual: bool, norm: str) -> None:
    live.choose(page, "residual connection", residual)
    live.choose(page, norm)
    done(page)


def done(page: Page) -> None:
    """Wait until all that was tried has been run."""
    expect(page.locator("live-residual")).to_have_attribute("data-busy", "false")


def row_of(page: Page, name: str) -> list[str]:
    rows = [row[1:] for row in live.table(page, TRIED) if row[0] == name]
    assert len(rows) == 1
    return rows[0]


def all_kinds_agree(page: Page, depth: int, strong: bool) -> None:
    live.choose(page, "like He’s" if strong else "PyTorch’s own")
    live.slide(page, "layers", depth)
    for (residual, norm), name in NAMES.items():
        choose(page, residual, norm)
        signals, gradients, alike = measured(name, strong, depth)
        cells = row_of(page, name)
        for cell, value in zip(cells, (signals[-1], gradients[0], alike), strict=True):
            assert live.same(cell, value), (name, strong, cells)
        assert page.locator("tr.now").inner_text().startswith(name)


@live.IN_BOTH
def test_all_of_the_chapters_table(page, request):
    assert not page.locator(".static").is_visible()
    assert page.locator("live-residual code").inner_text() == "part(x)"
    depth = 4 if "firefox" in request.node.name else 24
    for strong in (False, True):
        all_kinds_agree(page, depth, strong)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("depth", "residual", "norm", "strong"),
    [
        (1, False, "none", False),
        (7, True, "before the part", True),
        (64, False, "none", False),
        (64, True, "none", True),
    ],
)
def test_each_layer_at_each_depth(page, depth, residual, norm, strong):
    live.choose(page, "like He’s" if strong else "PyTorch’s own")
    live.slide(page, "layers", depth)
    choose(page, residual, norm)
    assert live.shown(page, "layers") == str(depth)
    signals, gradients, _ = measured(NAMES[residual, norm], strong, depth)
    head, *rows = live.table(page, EACH)
    assert head == ["after layer", "signal", "gradient"]
    assert [row[0] for row in rows] == [str(i) for i in range(depth + 1)]
    for (_, signal, gradient), *expected in zip(rows, signals, gradients, strict=True):
        assert all(map(live.same, (signal, gradient), expected))
    said = page.locator("live-residual .live-sentence").inner_text()
    factor = (gradients[0] / gradients[-1]) ** (1 / depth)
    found = re.search(
        r"as ([^.]+(?:\.\d+)?[^.]*)\. Each layer multiplies it by ([\d.]+),", said
    )
    assert found
    assert live.same(found[1], gradients[0]), said
    assert live.same(found[2], factor), said


def test_the_lines_stand_where_the_numbers_say(page):
    _, *rows = live.table(page, EACH)
    lines = page.locator("live-residual path.curve.now").evaluate_all(
        "paths => paths.map(p => p.getAttribute('d').match(/[\\d.]+ [\\d.]+/g)"
        ".map(at => Number(at.split(' ')[1])))"
    )
    ticks = page.locator("svg.live-chart g").nth(2).locator("text.live-tick")
    places = {t.text_content(): float(t.get_attribute("y")) - 5 for t in ticks.all()}
    top, bottom = places["1"], places["10⁻¹⁰"]
    for (_, _, gradient), y in zip(rows, lines[1], strict=True):
        from_line = 10 ** (-10 * (y - top) / (bottom - top))
        assert abs(log10(from_line) - log10(live.number(gradient))) < 0.05


def test_what_was_tried_stays_and_is_run_again_at_another_depth(page):
    choose(page, True, "before the part")
    assert page.locator("live-residual code").inner_text() == "x + part(norm(x))"
    live.slide(page, "layers", 12)
    done(page)
    for name in ("nothing", "pre-norm"):
        signals, gradients, _ = measured(name, False, 12)
        assert live.same(row_of(page, name)[0], signals[-1])
        assert live.same(row_of(page, name)[1], gradients[0])
    assert page.locator("live-residual path.curve").count() == 2 * 3


def test_it_is_shown_step_by_step_to_who_lets_things_move(live_page):
    page = live.ready(
        live_page(live.figure("residual"), reduced_motion="no-preference")
    )
    page.get_by_role("button", name="Run again").click()
    lengths = []
    for _ in range(200):
        busy = page.locator("live-residual").get_attribute("data-busy")
        d = page.locator("path.curve.now").first.get_attribute("d")
        lengths.append(d.count("L"))
        if busy == "false":
            break
    assert min(lengths) < 24
    assert lengths[-1] == 24


DEPTH = "formulas/depth.js"
test_a_planted_fault_is_seen = live.planted(
    "residual",
    lambda page: all_kinds_agree(page, 4, strong=True),
    (DEPTH, "const EPS = 1e-5", "const EPS = 1e-2"),
    (DEPTH, "- mean - normed", "- normed"),
    (DEPTH, "(this.residual) add(branch", "(!this.residual) add(branch"),
    (DEPTH, "hidden[n * INNER + f] === 0", "f === 0"),
    ("ui/torch-random.js", "values[i + 8] = radius", "values[i + 8] = -radius"),
    ("pieces/residual/kinds.js", 'name: "post-norm"', 'name: "pre-norm"'),
    ("pieces/residual.js", "its.gradients[0]", "its.gradients[1]"),
)
