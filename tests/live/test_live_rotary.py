"""The rotated query and key of the piece, and their score, are those of the package."""

import re
from math import atan2, cos, sin

import pytest
import torch
from playwright.sync_api import Locator, Page
from torch import Tensor

import live_driving as live
from tformer import RotaryEmbedding
from tformer.nn import rotary_frequencies

PIECE = "rotary"
WIDTH, LAST, SHOWN = 64, 256, (0, 8, 16, 24)
AREA = {"top": 26, "bottom": 186}  # pixels of a score / 64 of 1 and of −1
NUMBERS = r"-?[\d.]+"


def option(page: Page, legend: str) -> Locator:
    return page.get_by_role("group", name=legend, exact=True)


def taken(page: Page, legend: str) -> str:
    return option(page, legend).locator("label:has(:checked)").inner_text()


def take(page: Page, legend: str, value: str) -> None:
    option(page, legend).get_by_label(value, exact=True).dispatch_event("click")


def rotated(page: Page, name: str, positions: Tensor) -> Tensor:
    """Rotate the query or the key as the package does; (positions, WIDTH)."""
    torch.manual_seed(0)
    both = torch.randn(2, WIDTH, dtype=torch.float64)
    if taken(page, "query and key") == "ones":
        both = torch.ones_like(both)
    theta = rotary_frequencies(WIDTH, base=float(taken(page, "base").replace(",", "")))
    rotary = RotaryEmbedding(theta, layout=taken(page, f"layout of the {name}"))
    x = both[int(name == "key")].expand(1, 1, len(positions), WIDTH)
    return rotary(x, positions=positions)[0, 0]


def pairs(page: Page, name: str, x: Tensor) -> Tensor:
    """The two numbers of each pair; (pairs, 2)."""
    if taken(page, f"layout of the {name}") == "pairs":
        return x.view(-1, 2)
    return x.view(2, -1).T


def points(page: Page, line: str) -> list[tuple[float, float]]:
    path = page.locator(f".rotary-line.{line}").get_attribute("d") or ""
    found = [float(x) for x in re.findall(NUMBERS, path)]
    return list(zip(found[::2], found[1::2], strict=True))


def check(page: Page) -> None:
    """Compare arrows, angles, lines and sentence with what the package rotates."""
    at = {n: int(live.shown(page, f"position of the {n}")) for n in ("query", "key")}
    moved = torch.arange(LAST + 1)
    query, key = (rotated(page, n, moved + place) for n, place in at.items())
    check_pairs(page, at, {"query": query[0], "key": key[0]})
    both, alone = (query * key).sum(-1) / WIDTH, query @ key[0] / WIDTH
    said = page.locator("live-rotary .live-sentence").inner_text()
    distance, now, later = re.findall(
        r"Distance (\S+): the score / 64 is (\S+), and 100 places further on (\S+)\. ",
        said,
    )[0]
    assert live.number(distance) == at["query"] - at["key"]
    assert live.same(now, both[0].item())
    assert live.same(later, both[100].item())
    same = (both - both[0]).abs().max() < 1e-9
    assert said.endswith("It depends on the distance only.") == same
    for line, scores in (("both", both), ("alone", alone)):
        high = AREA["bottom"] - (scores + 1) / 2 * (AREA["bottom"] - AREA["top"])
        places = [y for _, y in points(page, line)]
        assert places == pytest.approx(high.tolist(), abs=0.06)


def check_pairs(page: Page, at: dict[str, int], x: dict[str, Tensor]) -> None:
    """Compare the drawn pairs, and the table of all, with the rotated vectors."""
    arrows = {name: pairs(page, name, vector).tolist() for name, vector in x.items()}
    base = float(taken(page, "base").replace(",", ""))
    theta = rotary_frequencies(WIDTH, base=base).tolist()
    angles = []
    for (x1, y1), (x2, y2) in zip(arrows["query"], arrows["key"], strict=True):
        angles.append(atan2(x2 * y1 - y2 * x1, x1 * x2 + y1 * y2))
    rows = live.table(page, "Each pair")[1:]
    for i, row in enumerate(rows):
        turned = [at[name] * theta[i] for name in ("query", "key")]
        assert row[0] == str(i)
        assert all(map(live.same, row[1:4], [theta[i], *turned]))
        # Half a turn ahead is half a turn behind.
        off = live.number(row[4]) - angles[i]
        assert (cos(off), sin(off)) == pytest.approx((1, 0), abs=6e-4)
    for plane, i in zip(page.locator(".rotary-plane").all(), SHOWN, strict=True):
        assert plane.locator("p").inner_text().startswith(f"pair {i}")
        assert live.same(plane.locator("b").inner_text(), live.number(rows[i][4]))
        assert live.same(plane.locator("span").inner_text()[2:], theta[i])
        lengths = []
        for name in ("query", "key"):
            path = plane.locator(f".rotary-arrow.{name}").get_attribute("d") or ""
            _, _, right, down = (float(v) for v in re.findall(NUMBERS, path))
            a, b = arrows[name][i]
            assert right * b == pytest.approx(-down * a, abs=0.05)
            assert right * a - down * b >= 0  # to this side, and not to the other
            lengths.append((right**2 + down**2) ** 0.5 / (a * a + b * b) ** 0.5)
        assert lengths[0] == pytest.approx(lengths[1], abs=0.05)


@live.IN_BOTH
def test_it_starts_with_dog_and_bites_one_place_apart(page):
    assert live.shown(page, "position of the query") == "4"
    check(page)
    assert "the score / 64 is 0.9662, and 100 places further on 0.9662" in (
        page.locator("live-rotary .live-sentence").inner_text()
    )


@pytest.mark.nightly
@pytest.mark.parametrize("drawn", ["ones", "random"])
@pytest.mark.parametrize("base", ["10,000", "500,000"])
def test_every_layout_at_several_places(page, drawn, base):
    take(page, "query and key", drawn)
    take(page, "base", base)
    for query, key in (("pairs", "pairs"), ("halves", "halves"), ("pairs", "halves")):
        take(page, "layout of the query", query)
        take(page, "layout of the key", key)
        for place in (0, 37, LAST):
            live.slide(page, "position of the key", place)
            check(page)
        live.slide(page, "position of the query", 200)


def test_both_move_on_and_the_score_stays(page):
    sentence = page.locator("live-rotary .live-sentence")
    before = sentence.inner_text()
    for _ in range(3):
        live.press(page, "Both 10 on")
        assert sentence.inner_text() == before
    assert live.shown(page, "position of the key") == "33"
    for _ in range(5):
        live.press(page, "Both 10 back")
    assert live.shown(page, "position of the key") == "0"
    assert sentence.inner_text() == before
    check(page)
    take(page, "layout of the key", "halves")
    assert sentence.inner_text() != before
    live.press(page, "Both 10 on")
    check(page)


def check_random(page: Page) -> None:
    take(page, "query and key", "random")
    live.slide(page, "position of the query", 40)
    check(page)
    take(page, "layout of the key", "halves")
    check(page)


FORMULA, DRAWING = "formulas/rotary.js", "pieces/rotary/plane.js"
test_a_planted_fault_is_seen = live.planted(
    "rotary",
    check_random,
    (FORMULA, "(-2 * i) / headDim", "(-2 * i) / (headDim - 2)"),
    (FORMULA, "x[first] * cosine - x[second]", "x[first] * cosine + x[second]"),
    (FORMULA, "[i, i + headDim / 2]", "[i, headDim - 1 - i]"),
    ("pieces/rotary.js", "score(by, 0)", "score(0, by)"),
    (
        "pieces/rotary.js",
        "arrow(now.key, i, this.layouts.key)",
        "arrow(now.key, i, 'pairs')",
    ),
    (DRAWING, "given.query, given.key);", "given.key, given.query);"),
    (DRAWING, "at(-y / given", "at(y / given"),
)
