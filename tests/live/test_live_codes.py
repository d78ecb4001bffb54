"""The codes of the piece, and what is read of them, are those of the package."""

import re

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS
from tformer.nn import dequantize, quantize

PIECE = "codes"
SIZES = (3.5, 7.0, 14.0, 35.0, 70.0)
HIGH = {"dot": 30, "mark": 56, "row": 76}  # pixels
NUMBERS = r"-?[\d.]+"
ARROWS = "all => all.map((each) => each.getAttribute('d'))"
DOTS = """all => all.map((each) => [each.classList.contains("zero"),
  ...["cx", "cy"].map((name) => Number(each.getAttribute(name)))])"""


def put(page: Page, bits: int, group: int, largest: float) -> None:
    live.slide(page, "bits of a code, b", bits)
    live.slide(page, "largest weight", SIZES.index(largest))
    live.choose(page, str(group))


def check(page: Page, bits: int, group: int, largest: float) -> None:
    """Compare the table, the lines and the sentence with what the package rounds."""
    weights = [0.7, -0.2, 0.1, 0.33, largest, -2.0, 1.0, 3.3]
    x = torch.tensor([weights], dtype=torch.float64)
    codes, scales = quantize(x, bits, group)
    read = dequantize(codes, scales)[0]
    rows = live.table(page, "The eight weights")[1:]
    for i, row in enumerate(rows):
        wanted = (
            weights[i],
            codes[0, i].item(),
            scales[0, i // group].item(),
            read[i].item(),
            read[i].item() - weights[i],
        )
        assert all(map(live.same, row, wanted)), (row, wanted)
    check_lines(page, weights, read.tolist(), scales[0].tolist(), bits)
    off = read - x[0]
    errors = [(off[to].norm() / x[0, to].norm()).item() for to in (slice(8), slice(4))]
    said = page.locator("live-codes .live-sentence").inner_text()
    numbers = re.fullmatch(
        r"(\d) bits, a scale for (\d): (\S+) bits a weight with a scale of 16 bits\. "
        r"(\d) of 8 become 0\. Error of all (\S+ %), of the four small ones (\S+ %)\.",
        said,
    )
    assert numbers, said
    zeros = (read == 0).sum().item()
    wanted = (bits, group, bits + 16 / group, zeros, *errors)
    assert all(map(live.same, numbers.groups(), wanted))


def check_lines(
    page: Page, weights: list[float], read: list[float], scales: list[float], bits: int
) -> None:
    """Compare marks, dots and arrows: each line reaches from −most to most codes."""
    most = 2 ** (bits - 1) - 1
    wide = page.locator("live-codes .live-chart").evaluate(
        "s => s.viewBox.baseVal.width"
    )
    group = len(weights) // len(scales)

    def across(value: float, i: int) -> float:
        return 14 + (value / (scales[i // group] * most) + 1) / 2 * (wide - 28)

    for marks in page.locator(".codes-marks").evaluate_all(ARROWS):
        places = [float(x) for x in re.findall(r"M([\d.]+) ", marks)]
        even = torch.linspace(14, wide - 14, 2 * most + 1).tolist()
        assert places == pytest.approx(even, abs=0.02)
    dots = page.locator("circle.codes-dot").evaluate_all(DOTS)
    arrows = page.locator(".codes-arrow").evaluate_all(ARROWS)
    for i, ((zero, x, y), arrow) in enumerate(zip(dots, arrows, strict=True)):
        assert zero == (read[i] == 0)
        top = i // group * HIGH["row"]
        begin, end = (across(value[i], i) for value in (weights, read))
        assert [x, y] == pytest.approx([begin, top + HIGH["dot"]], abs=0.02)
        places = [float(v) for v in re.findall(NUMBERS, arrow)]
        wanted = [begin, top + HIGH["dot"], end, top + HIGH["mark"]]
        assert places == pytest.approx(wanted, abs=0.02)


@live.IN_BOTH
def test_it_starts_with_the_codes_of_the_chapter(page):
    text = (DOCS / "chapters/smaller-numbers.md").read_text("utf-8")
    (printed,) = re.findall(r"codes:  \[\[(.*?)\]\]", text)
    check(page, 4, 4, 7.0)
    rows = live.table(page, "The eight weights")[1:]
    assert [int(live.number(row[1])) for row in rows] == [*map(int, printed.split())]


@pytest.mark.by_day(3)
@pytest.mark.parametrize("group", [2, 4, 8])
@pytest.mark.parametrize("largest", SIZES)
def test_every_number_of_bits(page, group, largest):
    for bits in range(2, 9):
        put(page, bits, group, largest)
        check(page, bits, group, largest)


def test_halves_go_to_the_even_number_as_in_torch(page):
    rounds = """async () => {
      const { quantize } = await import('/live/formulas/quantisation.js')
      return quantize([7, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49], 4, 8).codes
    }"""
    x = torch.tensor([7, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49], dtype=torch.float64)
    assert page.evaluate(rounds) == quantize(x, 4)[0].tolist()


def all_of_it(page: Page) -> None:
    for settings in ((4, 4, 7.0), (3, 8, 14.0), (2, 2, 70.0)):
        put(page, *settings)
        check(page, *settings)


FORMULA = "formulas/quantisation.js"
test_a_planted_fault_is_seen = live.planted(
    "codes",
    all_of_it,
    (FORMULA, "2 ** (bits - 1) - 1", "2 ** (bits - 1)"),
    (FORMULA, "Math.max(...x.slice", "Math.min(...x.slice"),
    (FORMULA, "codes.length / scales.length", "2 * codes.length / scales.length"),
    (FORMULA, "16 / group", "16 / 8"),
    (FORMULA, "return Math.round(x)", "return below"),
    ("pieces/codes.js", "const SMALL = 4", "const SMALL = 5"),
    ("pieces/codes/lines.js", "x(read[i])", "x(weights[i])"),
)
