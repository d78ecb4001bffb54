"""The piece on scaling out computes what the blocks of its chapter compute."""

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS

PIECE = "scaling"
CHAPTER = (DOCS / "chapters/scaling-out.md").read_text("utf-8")
PARAMETERS = [124_439_808, 354_823_168, 774_030_080, 1_557_611_200, 7e9, 70e9]
GPUS = [2**n for n in range(11)]
WEAK = [2**n for n in range(10, 18)]
STRONG = [2**n for n in range(14, 24)]
BETWEEN = [12.5e9, 25e9, 50e9, 100e9, 200e9, 400e9]
EACH = [1, 5, 20, 50, 100, 200]  # tokens for each parameter
TIMES = {"ms": 1e-3, "s": 1, "hours": 3600, "days": 86_400, "years": 365 * 86_400}
DEFAULT = {"P": 3, "n": 6, "tokens": 3, "between": 0, "each": 2, "speed": 400}
SETTINGS = [  # weak, bytes of a gradient, places of the sliders
    (True, 4, DEFAULT),
    (True, 2, {**DEFAULT, "P": 0, "n": 10, "tokens": 7, "between": 5}),
    (True, 4, {**DEFAULT, "P": 5, "n": 3, "tokens": 0, "each": 5, "speed": 1000}),
    (False, 4, {**DEFAULT, "n": 9, "tokens": 5, "between": 5}),
    (False, 2, {**DEFAULT, "P": 4, "n": 4, "tokens": 9, "between": 2, "speed": 50}),
    (False, 4, {**DEFAULT, "P": 1, "n": 0, "tokens": 1, "each": 0}),
]


def chapter(P: float, speed: float, size: int) -> dict[str, Any]:
    """Run what the chapter's block defines, with other assumptions."""
    block = re.search(r"(?m)^P = 1_557.*?(?=\n\n\nfor name)", CHAPTER, re.DOTALL)
    assert block
    names: dict[str, Any] = {"np": np}
    exec(block[0], names)
    names |= {"P": P, "SPEED": speed, "BYTES": size}
    return names


def put(page: Page, weak: bool, size: int, places: dict[str, int]) -> None:
    live.choose(page, "weak" if weak else "strong")
    live.choose(page, "float32" if size == 4 else "16 bits")
    live.slide(page, "parameters P", places["P"])
    live.slide(page, "tokens a GPU" if weak else "tokens in all", places["tokens"])
    live.slide(page, "network", places["between"])
    live.slide(page, "tokens a parameter", places["each"])
    live.slide(page, "speed F", places["speed"])
    live.slide(page, "GPUs n", places["n"])


def amounts(text: str, units: str) -> list[float]:
    found = re.findall(rf"([\d.,]*\d) ({units})\b", text)
    return [live.number(x) * TIMES.get(unit, 1) for x, unit in found]


def close(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, rel=0.0051)  # three digits are shown


def agrees(page: Page, weak: bool, size: int, places: dict[str, int]) -> None:
    put(page, weak, size, places)
    P, n = PARAMETERS[places["P"]], GPUS[places["n"]]
    between = BETWEEN[places["between"]]
    tokens = (WEAK if weak else STRONG)[places["tokens"]]
    names = chapter(P, places["speed"] * 1e12, size)
    step_time = names["step_time"]
    names["STRONG"] = tokens
    counts = [x for x in GPUS if weak or tokens // x >= names["CONTEXT"]]
    assert live.shown(page, "GPUs n") == f"{n:,}"
    assert live.shown(page, "network") == f"{between / 1e9:g} GB/s"

    def on_each(count: int) -> float:
        return tokens if weak else tokens / count

    def efficiency(count: int) -> float:
        if not weak:
            return names["strong_scaling"](count, between)
        return step_time(1, tokens, between) / step_time(count, tokens, between)

    data = EACH[places["each"]] * P
    head, *rows = live.table(page, "A step and a training")
    assert head == ["GPUs", "one step", "efficiency", "training", "GPU hours"]
    assert [row[0] for row in rows] == [f"{count:,}" for count in counts]
    for count, row in zip(counts, rows, strict=True):
        step = step_time(count, on_each(count), between)
        seconds = data / (on_each(count) * count) * step
        assert close(amounts(row[1], "ms|s")[0], step) or step < 0.1
        assert amounts(row[1], "ms|s")[0] == pytest.approx(step, rel=0.05)
        assert abs(live.number(row[2]) - efficiency(count)) <= 0.00501
        assert close(amounts(row[3], "hours|days|years")[0], seconds)
        assert close(live.number(row[4]), count * seconds / 3600)

    told, cost = page.locator("live-scaling .live-sentence").all_inner_texts()
    step = step_time(n, on_each(n), between)
    computing = step_time(1, on_each(n), between)
    assert told.startswith("One GPU:" if n == 1 else f"{n:,} GPUs:")
    assert f"efficiency {efficiency(n) * 100:.0f} %" in told
    times = amounts(told, "ms|s")
    assert times[0] == pytest.approx(step, rel=0.05)
    if "they wait" in told:
        assert times[1] == pytest.approx(step - computing, rel=0.05)
    else:
        assert step == pytest.approx(computing)
    held = [
        live.number(x) * 1000 ** "kMGT".find(u) * 1000
        for x, u in re.findall(r"([\d.]+) ([kMGT])B with", told)
    ]
    assert close(held[0], 16 * P)
    assert close(held[1], 16 * P / n)
    assert f"takes {data / (on_each(n) * n):,.0f} steps" in cost
    hours = data / (on_each(n) * n) * step / 3600
    alone = data / tokens * step_time(1, tokens, between) / 3600
    spans = amounts(cost, "hours|days|years")
    assert close(spans[0], 3600 * hours)
    assert close(spans[1], 3600 * alone)
    work = [live.number(x) for x in re.findall(r"([\d.,]*\d) GPU hours", cost)]
    assert close(work[0], n * hours)
    assert close(work[1], alone)

    chart = page.locator("live-scaling svg.live-chart").nth(1)
    text = chart.locator("text.strong").text_content()
    assert text == f"{efficiency(n) * 100:.0f} %"
    bars = page.locator("live-scaling .lane").evaluate_all(
        "all => all.map(g => [g.getAttribute('class').split(' ')[1], "
        "...['x', 'width'].map(name => Number(g.firstChild.getAttribute(name)))])"
    )
    lanes = {kind: (x, x + width) for kind, x, width in bars}
    start, behind = lanes["forward"]
    per_second = (behind - start) / (2 * P * on_each(n) / (places["speed"] * 1e12))
    assert lanes["backward"] == pytest.approx((behind, start + computing * per_second))
    ends = (start + computing * per_second, start + step * per_second)
    assert lanes["waiting"] == pytest.approx(ends)
    assert lanes["sending"][0] == pytest.approx(behind)
    longest = max(lanes["backward"][1], lanes["sending"][1])
    assert longest == pytest.approx(start + step * per_second)


def test_all_numbers_are_those_of_the_chapters_functions(page):
    for setting in SETTINGS:
        agrees(page, *setting)


@live.IN_BOTH
def test_one_batch_is_not_divided_below_a_sequence_for_each_gpu(page):
    put(page, False, 4, {**DEFAULT, "tokens": 0, "n": 4})
    assert page.get_by_label("GPUs n").get_attribute("max") == "4"
    assert len(live.table(page, "A step and a training")) == 1 + 5
    assert not page.get_by_label("tokens a GPU", exact=True).is_visible()


def check(page: Page) -> None:
    for setting in (SETTINGS[2], SETTINGS[3], SETTINGS[0]):
        agrees(page, *setting)


test_a_planted_fault_is_seen = live.planted(
    "scaling",
    check,
    ("formulas/scaling.js", "(2 * parameters * tok", "(4 * parameters * tok"),
    ("formulas/scaling.js", "(2 * (n - 1)) / n", "(3 * (n - 1)) / n"),
    ("formulas/scaling.js", "n <= MACHINE", "n < MACHINE"),
    ("formulas/scaling.js", "tokens / n).total / n", "tokens / n).total"),
    ("formulas/scaling.js", "DELAY = 10e-6", "DELAY = 10e-4"),
    ("formulas/scaling.js", "gpuHours: n * hours", "gpuHours: hours"),
    ("formulas/scaling.js", "ddp: HELD", "fsdp: HELD"),
    ("pieces/scaling/step.js", "forward + backward, waiting", "forward, waiting"),
    ("pieces/scaling/step.js", 'backward, "backward"', 'forward, "backward"'),
    ("pieces/scaling.js", "percent(own[i]), duration", "percent(own[0]), duration"),
    ("pieces/scaling/words.js", "few(hours / 24)} days", "few(hours / 24)} years"),
)
