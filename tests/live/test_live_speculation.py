"""What the piece keeps, replaces and writes is what the package's rule gives."""

import re

import pytest
import torch
from playwright.sync_api import Page
from torch import Tensor

import live_driving as live
from live_serving import DOCS
from tformer.generate.speculative import acceptance, after_rejection

PIECE = "speculation"
CHAPTER = ((5, 3, 2), (2, 6, 2))
Parts = tuple[tuple[int, ...], tuple[int, ...]]
BARS = """() => ["p", "q", "kept", "replaced"].map((kind) =>
  [...document.querySelectorAll(`rect.speculation-bar.${kind}`)].map((bar) =>
    ["y", "height"].map((name) => Number(bar.getAttribute(name)))))"""


def put(page: Page, parts: Parts) -> None:
    for who, numbers in zip(("model", "draft"), parts, strict=True):
        for token, number in enumerate(numbers, start=1):
            live.slide(page, f"{who}, token {token}", number)


def read(page: Page) -> Parts:
    model, draft = (
        tuple(int(live.shown(page, f"{who}, token {token}")) for token in (1, 2, 3))
        for who in ("model", "draft")
    )
    return model, draft


def rule(page: Page) -> tuple[Tensor, ...]:
    """Compute p, q, and for each token: kept with, proposed and kept, replaced."""
    p, q = (torch.tensor(x, dtype=torch.float64) / sum(x) for x in read(page))
    accept = acceptance(p, q).where(q > 0, 0)
    kept = q * accept
    after = after_rejection(p, q)
    if not page.get_by_role("switch").is_checked():
        after = p
    return p, q, accept, kept, (1 - kept.sum()) * after


def check(page: Page) -> None:
    """Compare the table, the bars and both sentences with the package's rule."""
    p, q, accept, kept, replaced = rule(page)
    total = kept + replaced
    rows = live.table(page, "What becomes of each token")[1:]
    columns = [x.tolist() for x in (p, q, accept, kept, replaced, total)]
    for row, *wanted in zip(rows, *columns, strict=True):
        assert all(map(live.same, row[1:], wanted))
    high = 1.0 if torch.cat((p, q, total)).max() > 0.75 else 0.8
    lifted = [torch.zeros(3), torch.zeros(3), torch.zeros(3), kept]
    drawn = page.evaluate(BARS)
    for bars, heights, begin in zip(drawn, (p, q, kept, replaced), lifted, strict=True):
        long = (heights / high * 174).tolist()
        ends = (196 - (begin + heights) / high * 174).tolist()
        for bar, y, height in zip(bars, ends, long, strict=True):
            assert bar == pytest.approx([y, height], abs=1e-6)
    check_sentences(page, p, kept, total)


def check_sentences(page: Page, p: Tensor, kept: Tensor, total: Tensor) -> None:
    said, speed = page.locator("live-speculation .live-sentence").all_inner_texts()
    numbers = re.fullmatch(
        r"Of the draft’s proposals (\d+ %) are kept\. In total (.*?); the model wants "
        r"(.*?): (?:the same|wrong in (\S+ %) of the cases)\.",
        said,
    )
    assert numbers, said
    alpha = kept.sum().item()
    assert live.same(numbers[1], alpha)
    for text, wanted in ((numbers[2], total), (numbers[3], p)):
        assert all(map(live.same, text.split(", "), wanted.tolist()))
    off = (total - p).abs().sum().item() / 2
    assert (numbers[4] is None) == (off < 1e-12)
    if numbers[4]:
        assert live.same(numbers[4], off)
    K = int(live.shown(page, "tokens ahead, K"))
    c = float(live.shown(page, "a draft’s step, c"))
    written = K + 1.0 if alpha > 1 - 1e-12 else (1 - alpha ** (K + 1)) / (1 - alpha)
    found = re.search(
        r"writes (\S+) tokens\. With the draft’s steps that is (\S+) times", speed
    )
    assert found
    assert all(map(live.same, found.groups(), (written, written / (1 + c * K))))


@live.IN_BOTH
def test_it_starts_with_the_smallest_case_of_the_chapter(page):
    text = (DOCS / "chapters/faster-writing.md").read_text("utf-8")
    assert "rejected:           3/10" in text
    assert "in total:           1/2 3/10 1/5" in text
    assert read(page) == CHAPTER
    check(page)
    said = page.locator("live-speculation .live-sentence").first.inner_text()
    assert said.startswith("Of the draft’s proposals 70 % are kept.")
    assert said.endswith("the same.")


@pytest.mark.by_day(3)
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(
    "parts",
    [
        CHAPTER,
        ((5, 3, 2), (5, 3, 2)),
        ((10, 0, 1), (0, 10, 1)),
        ((0, 0, 1), (10, 10, 1)),
        ((7, 9, 4), (0, 0, 3)),
        ((1, 1, 1), (3, 3, 3)),
    ],
)
def test_any_two_that_disagree(page, parts, right):
    put(page, parts)
    live.choose(page, "replace from (p − q)₊", right)
    for K, c in ((1, 0), (4, 2), (8, 20)):
        live.slide(page, "tokens ahead, K", K)
        live.slide(page, "a draft’s step, c", c)
        check(page)


def test_a_replacement_from_p_gives_other_probabilities(page):
    said = page.locator("live-speculation .live-sentence").first
    live.choose(page, "replace from (p − q)₊", on=False)
    assert said.inner_text().endswith("wrong in 15.0 % of the cases.")
    put(page, ((2, 6, 2), (2, 6, 2)))  # nothing is rejected: it hides
    assert said.inner_text().endswith("the same.")


def all_of_it(page: Page) -> None:
    for parts in (CHAPTER, ((7, 9, 4), (0, 5, 3))):
        put(page, parts)
        check(page)
    live.choose(page, "replace from (p − q)₊", on=False)
    check(page)


FORMULA = "formulas/speculation.js"
test_a_planted_fault_is_seen = live.planted(
    "speculation",
    all_of_it,
    (FORMULA, "Math.min(1, wanted / q[x])", "wanted / q[x]"),
    (FORMULA, "Math.max(wanted - q[x], 0)", "Math.max(q[x] - wanted, 0)"),
    (FORMULA, "each / sum", "each"),
    (FORMULA, "length: ahead + 1", "length: ahead"),
    ("pieces/speculation.js", "right ? afterRejection(p, q) : p", "p"),
    ("pieces/speculation.js", "(1 + c * K)", "(1 + c)"),
    ("pieces/speculation/bars.js", '"replaced", 2, kept', '"replaced", 2, 0'),
)
