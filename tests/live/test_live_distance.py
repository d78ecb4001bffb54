"""The slopes and buckets of the piece are those of the package."""

import re
from math import exp, log

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from tformer.nn import alibi_slopes, bucket_starts, relative_buckets
from tformer.nn.relative import ALiBi

PIECE = "distance"
REACH = 150
BUCKETS, FURTHEST = (4, 8, 16, 32, 64), (64, 128, 256)
PLACES = list(range(-REACH, REACH + 1))
DRAWN = """() => [".after", ":not(.after)"].flatMap((kind) => {
  const d = document.querySelector(`.distance-line${kind}`).getAttribute("d")
  return [...d.matchAll(/[ML][\\d.-]+ ([\\d.]+)/g)].map((found) => Number(found[1]))
})"""


def said(page: Page) -> str:
    return page.locator("live-distance .live-sentence").inner_text()


def check_line(page: Page, values: list[float], most: float) -> None:
    """Compare the steps, the mark and the table with the values of all distances."""
    drawn = page.evaluate(DRAWN)
    assert drawn == pytest.approx([206 - 180 * v / most for v in values], abs=0.06)
    now = round(live.number(live.shown(page, "distance")))
    mark = page.locator(".distance-dot")
    assert float(mark.get_attribute("cy")) == pytest.approx(
        drawn[now + REACH], abs=0.06
    )
    rows = live.table(page, "By the distance")[1:]
    assert [live.number(row[0]) for row in rows] == PLACES
    assert all(map(live.same, [row[1] for row in rows], values))


def check_buckets(page: Page, N: int, M: int, *, both: bool, now: int) -> None:
    live.slide(page, "buckets N", BUCKETS.index(N))
    live.slide(page, "furthest M", FURTHEST.index(M))
    live.choose(page, "both directions", both)
    live.slide(page, "distance", now)
    assert (live.shown(page, "buckets N"), live.shown(page, "furthest M")) == (
        str(N),
        str(M),
    )
    starts = bucket_starts(N // 2 if both else N, M)
    distance = torch.tensor(PLACES)
    buckets = relative_buckets(distance, starts, bidirectional=both).tolist()
    check_line(page, buckets, N - 1)
    own = buckets[now + REACH]
    text = said(page)
    assert text.startswith(f"Distance {now}: bucket {own} of {N}. ".replace("-", "−"))
    shared = [at for at, bucket in zip(PLACES, buckets, strict=True) if bucket == own]
    if len(shared) == 1:
        assert text.endswith("It has that bucket for itself.")
        return
    ends = re.search(r"from (\S+) to (\S+?)( and beyond)?\.$", text)
    assert ends
    assert [live.number(ends[1]), live.number(ends[2])] == [shared[0], shared[-1]]
    assert bool(ends[3]) == (max(map(abs, shared)) == REACH)


def check_slope(page: Page, H: int, head: int, now: int) -> None:
    live.slide(page, "heads H", H)
    live.slide(page, "head", head)
    live.slide(page, "distance", now)
    slope = alibi_slopes(H)[head - 1].item()
    module = ALiBi(H).double()  # the last query; and for later keys the first one
    before, after = module(REACH + 1, REACH + 1)[0, head - 1][[-1, 0]].tolist()
    bias = [*reversed(after), *reversed(before[:-1])]
    check_line(page, [exp(x) for x in bias], 1)
    numbers = re.fullmatch(
        rf"Head {head} of {H} has the slope 1 / (\S+)\. At distance (\S+) it adds "
        r"(\S+), which multiplies the weight by (\S+)\. Half the weight is left after "
        r"(\S+) places\.",
        said(page),
    )
    assert numbers, said(page)
    added = bias[now + REACH]
    wanted = (1 / slope, now, added, exp(added), log(2) / slope)
    assert all(map(live.same, numbers.groups(), wanted))


@live.IN_BOTH
def test_it_starts_with_the_32_buckets_of_the_chapter(page):
    assert said(page).startswith("Distance 20: bucket 17 of 32. It shares it with")
    check_buckets(page, 32, 128, both=False, now=20)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("M", FURTHEST)
@pytest.mark.parametrize("N", BUCKETS)
def test_buckets_of_every_number(page, N, M, both):
    for now in (-REACH, -3, 0, 8, 77):
        check_buckets(page, N, M, both=both, now=now)


def test_slopes_of_any_number_of_heads(page):
    live.choose(page, "ALiBi")
    assert not page.get_by_label("buckets N").is_visible()
    for H, head, now in (
        (8, 4, 20),
        (1, 1, -7),
        (6, 5, 0),
        (12, 9, 150),
        (16, 16, -99),
    ):
        check_slope(page, H, head, now)
    live.slide(page, "heads H", 3)  # there is no head 16 of 3
    assert live.shown(page, "head") == "3"


def all_of_it(page: Page) -> None:
    check_buckets(page, 32, 128, both=False, now=20)
    check_buckets(page, 16, 64, both=True, now=-9)
    live.choose(page, "ALiBi")
    check_slope(page, 6, 5, 12)


FORMULA = "formulas/relative.js"
test_a_planted_fault_is_seen = live.planted(
    "distance",
    all_of_it,
    (FORMULA, "h % 2 === 0", "h % 2 === 1"),
    (FORMULA, "(-8 * (h + 1)) / m", "(-8 * h) / m"),
    (FORMULA, "< power) start", "<= power) start"),
    (FORMULA, "start <= places", "start < places"),
    (FORMULA, "bidirectional && distance < 0", "distance < 0"),
    ("pieces/distance.js", "both ? N / 2 : N, M", "N, M"),
    ("pieces/distance/plot.js", "values[now + reach]", "values[reach - now]"),
)
