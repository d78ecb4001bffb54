"""The piece routes its tokens, counts and balances as the package's router does."""

import re
from functools import cache

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from tformer.nn.router import Router, Routing, expert_counts, load_balance_loss

PIECE = "experts"
TOKENS, EXPERTS = 64, 8
PLACES = """() => {
  const path = document.querySelector(".experts-chosen").getAttribute("d")
  const row = document.querySelector(".experts-row")
  const [left, wide] = ["x", "width"].map((name) => Number(row.getAttribute(name)))
  return [...path.matchAll(/M([\\d.]+) (\\d+)/g)].map(([_, x, y]) =>
    [Math.round((x - left) / wide * 64), (y - 27) / 24])
}"""
BARS = """() => [...document.querySelectorAll(".experts-load")].map(
  (bar) => Number(bar.getAttribute("width")))"""


@cache
def routed(share: float, k: int, steps: int) -> tuple[Routing, list[float]]:
    """Let the package's router take steps; its last routing, and its bias."""
    torch.manual_seed(8)
    drawn = torch.randn(16 + TOKENS * EXPERTS, dtype=torch.float64)
    logits = share * drawn[:EXPERTS] + drawn[16:].view(TOKENS, EXPERTS)
    router = Router(EXPERTS, EXPERTS, top_k=k, balance_rate=0.01).double()
    router.proj.weight.data = torch.eye(EXPERTS, dtype=torch.float64)
    with torch.no_grad():
        for _ in range(steps):
            router.balance(router(logits).chosen)
        return router(logits), router.selection_bias.tolist()


def put(page: Page, share: float, k: int, steps: int) -> None:
    live.slide(page, "common part", round(2 * share))
    live.slide(page, "steps of the bias", steps)
    live.choose(page, str(k))


def check(page: Page, share: float, k: int, steps: int) -> None:
    """Compare the cells, the bars, the sentence and the table with the package."""
    assert live.same(live.shown(page, "common part"), share)
    assert live.shown(page, "steps of the bias") == str(steps)
    routing, bias = routed(share, k, steps)
    counts = expert_counts(routing.chosen, EXPERTS)
    loads = (counts / (k * TOKENS)).tolist()
    cells = sorted((token, expert) for token, expert in page.evaluate(PLACES))
    chosen = enumerate(routing.chosen.tolist())
    assert cells == sorted((t, e) for t, experts in chosen for e in experts)
    bars = page.evaluate(BARS)
    longest = max(bars) / max(loads)
    assert bars == pytest.approx([max(longest * x, 0.5) for x in loads], abs=1e-6)
    said = page.locator("live-experts .live-sentence").inner_text()
    numbers = re.fullmatch(
        r"(?:After (\d+) steps|Without balance) (\d) of 8 experts (?:is|are) unused, "
        r"with less than 1 % of the choices, and the most used has (\d+ %)\. "
        r"8 · Σ f P = ([\d.]+)\.",
        said,
    )
    assert numbers, said
    assert int(numbers[1] or 0) == steps
    assert int(numbers[2]) == sum(load < 0.01 for load in loads)
    assert live.same(numbers[3], max(loads))
    balance = load_balance_loss(routing.scores, routing.chosen).item()
    assert live.same(numbers[4], balance)
    scores = routing.scores.mean(0).tolist()
    rows = live.table(page, "Load and bias of each expert")[1:]
    for e, row in enumerate(rows):
        assert row[:2] == [str(e), str(counts[e].item())]
        assert all(map(live.same, row[2:], (loads[e], bias[e], scores[e])))


@live.IN_BOTH
def test_it_starts_without_balance_and_with_the_chapters_common_part(page):
    check(page, 2.0, 2, 0)
    assert page.locator(".experts-dead").count() == 2 * 3  # its number and its load
    put(page, 2.0, 2, 60)
    check(page, 2.0, 2, 60)
    assert page.locator(".experts-dead").count() == 0


@pytest.mark.by_day(3)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, 1.5, 2.0])
def test_every_common_part_and_number_of_experts(page, share, k):
    for steps in (0, 5, 45, 100):
        put(page, share, k, steps)
        check(page, share, k, steps)


def all_of_it(page: Page) -> None:
    for share, k, steps in ((2.0, 2, 0), (1.5, 2, 40), (1.0, 1, 10)):
        put(page, share, k, steps)
        check(page, share, k, steps)


FORMULA = "formulas/router.js"
test_a_planted_fault_is_seen = live.planted(
    "experts",
    all_of_it,
    (FORMULA, "score + bias[expert]", "score"),
    (FORMULA, "b.wanted - a.wanted", "a.wanted - b.wanted"),
    (FORMULA, "mean - counts[e]", "counts[e] - mean"),
    (FORMULA, "count / chosen.flat().length", "count / chosen.length"),
    ("formulas/softmax.js", "score - largest", "2 * (score - largest)"),
    ("pieces/experts.js", "load < UNUSED", "load <= UNUSED / 4"),
    ("pieces/experts/drawing.js", "token * step", "(token + 1) * step"),
    ("pieces/experts/drawing.js", "(load / reach) * long, 0.5)", "long / 8, 0.5)"),
)
