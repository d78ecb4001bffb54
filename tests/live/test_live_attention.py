"""The pieces of the chapter on attention show what the package computes."""

import random
import re
from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page

from live_driving import (
    audit,
    figure,
    keys_reach,
    number,
    ready,
    same,
    shown,
    slide,
    table,
)
from live_faults import plant
from live_serving import ROOT, LiveSite
from tformer import attention_weights

Open = Callable[..., Page]
NAMES = ("query: it", "key: cat", "key: sat", "key: because")
TEMPERATURES = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10)
VALUE = torch.eye(3, 4, dtype=torch.float64) * 10


def handle(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name, exact=True)


def vectors(page: Page) -> torch.Tensor:
    """Return query and keys (4, 4), in the places of the chapter, as handles tell."""
    rows = []
    for name in NAMES:
        said = handle(page, name).get_attribute("aria-valuetext") or ""
        found = re.fullmatch(r"living (\S+), noun (\S+)", said)
        assert found, said
        living, noun = map(number, found.groups())
        assert handle(page, name).get_attribute("aria-valuenow") == f"{living:g}"
        rows.append([living, 0, noun, 0])
    rows[2][1] = rows[3][3] = 1  # sat is a verb, because a link: the query asks neither
    return torch.tensor(rows, dtype=torch.float64)


def wrong_numbers(page: Page) -> list[str]:
    """Compare each number that is shown with the package's."""
    query, keys = vectors(page).split([1, 3])
    temperature = float(shown(page, "temperature"))
    divide = page.get_by_role("switch").is_checked()
    scale = (1 / sqrt(4) if divide else 1) / temperature
    weights = attention_weights(query[None, None], keys[None, None], scale=scale)
    output = weights[0, 0, 0] @ VALUE
    scores = (query @ keys.T)[0]
    heading, *rows = table(page, "The steps from scores to weights")
    by = [*(["√4"] if divide else []), *([f"{temperature:g}"] * (temperature != 1))]
    wrong = [] if heading[2] == f"÷ {' · '.join(by) or '1'}" else [heading[2]]
    scaled = scores * scale
    steps = zip(scores, scaled, scaled.exp(), weights[0, 0, 0], strict=True)
    names = [name.removeprefix("key: ") for name in NAMES[1:]]
    for name, row, expected in zip(names, rows, steps, strict=True):
        told, *cells = row
        assert told == name
        wrong += [
            f"{name}: {cell}, not {float(x)}"
            for cell, x in zip(cells, expected, strict=True)
            if not same(cell, float(x))
        ]
    *values, new = table(page, "The values, and their mean")
    assert [row[0] for row in values] == [f"value of {name}" for name in names]
    assert [[float(x) for x in row[1:]] for row in values] == VALUE.tolist()
    pairs = zip(new[1:], output, strict=True)
    wrong += [f"{x} in {new}" for x, y in pairs if not same(x, float(y))]
    bars = page.locator(".attention-bar").evaluate_all(
        "bars => bars.map(bar => parseFloat(bar.style.width))"
    )
    if not np.allclose(bars, 100 * weights.flatten(), atol=1e-3):
        wrong.append(f"bars {bars}")
    dots = page.locator(".attention-tip .tip").evaluate_all(
        "dots => dots.map(dot => dot.r.baseVal.value)"
    )
    areas = (np.array(dots[:3]) / 18) ** 2
    if not np.allclose(areas, weights.flatten().clamp(min=1 / 36), atol=1e-6):
        wrong.append(f"areas {areas}")
    return wrong + wrong_lines(page, query[0, [0, 2]], scale)


def wrong_lines(page: Page, query: torch.Tensor, scale: float) -> list[str]:
    """Check that the divided score is a whole number all along each thin line."""
    paths = page.locator(".attention-levels path").evaluate_all(
        "paths => paths.map(path => path.getAttribute('d'))"
    )
    size = page.locator(".attention-plane").get_attribute("viewBox")
    assert size
    middle = float(size.split()[-1]) / 2
    unit = (middle - 14) / 3  # pixels: the plane ends at 3, 14 pixels from the edge
    found = set()
    for path in paths:
        x1, y1, x2, y2 = (float(x) for x in re.findall(r"-?[\d.e-]+", path))
        for x, y in ((x1, y1), (x2, y2)):
            living, noun = (x - middle) / unit, (middle - y) / unit
            score = (query[0] * living + query[1] * noun).item() * scale
            if abs(score - round(score)) > 1e-6:
                return [f"a line at {score}"]
        found.add(round(score))
    whole = found == set(range(min(found), max(found) + 1)) if found else True
    return [] if whole and (0 in found or not found) else [f"lines {sorted(found)}"]


def stir(page: Page, seed: int) -> None:
    """Press keys, and move what can be moved."""
    chance = random.Random(seed)
    for name in NAMES:
        for _ in range(6):
            arrow = chance.choice(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"])
            handle(page, name).press(chance.choice(["", "Shift+"]) + arrow)
    slide(page, "temperature", chance.randrange(len(TEMPERATURES)))
    if chance.random() < 0.5:
        page.get_by_role("switch").click()


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_it_starts_with_the_smallest_case_of_the_chapter(live_page: Open) -> None:
    page = ready(live_page(figure("attention")))
    text = (ROOT / "docs/chapters/attention.md").read_text("utf-8")
    printed = dict(re.findall(r"^([\w· ]+):? +\[\[([\d. ]+)\]\]$", text, re.MULTILINE))
    block = text[text.index("query = np.array") : text.index("scores = query @ key.T")]
    names = {"np": np}
    exec(block, names)
    chapter = np.concatenate([names["query"], names["key"]])
    assert vectors(page).tolist() == chapter.tolist()
    assert not wrong_numbers(page)
    rows = table(page, "The steps from scores to weights")[1:]
    new = table(page, "The values, and their mean")[-1]
    for name, cells in (
        ("weights", [row[-1] for row in rows]),
        ("new vector", new[1:]),
    ):
        digits = [float(x) for x in printed[name].split()]
        assert all(same(x, y) for x, y in zip(cells, digits, strict=True)), name


@pytest.mark.parametrize("seed", range(4))
def test_keys_and_sliders(live_page: Open, seed: int) -> None:
    page = ready(live_page(figure("attention")))
    before = vectors(page)
    for turn in range(3):
        stir(page, 10 * seed + turn)
        assert not wrong_numbers(page)
    assert not torch.equal(vectors(page), before)
    page.get_by_role("button", name="Start again").click()
    assert torch.equal(vectors(page), before)
    assert not wrong_numbers(page)


def centre(there: Locator) -> tuple[float, float]:
    box = there.locator(".tip").bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_mouse_drags_the_query(live_page: Open) -> None:
    page = ready(live_page(figure("attention")))
    x, y = centre(handle(page, NAMES[0]))
    zero, unit = centre(handle(page, NAMES[3])), centre(handle(page, NAMES[2]))
    one = unit[0] - zero[0]  # pixels: sat is 1 to the right of because
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 3 * one, y + one, steps=5)
    page.mouse.up()
    assert torch.allclose(vectors(page)[0, [0, 2]], torch.tensor([-1.0, 1.0]).double())
    assert centre(handle(page, NAMES[0])) == pytest.approx(
        (x - 3 * one, y + one), abs=1
    )
    assert not wrong_numbers(page)
    page.mouse.move(10, 10)  # it was let go
    assert vectors(page)[0, 0] == -1


def test_a_finger_drags_a_key_and_the_plane_has_an_end(live_page: Open) -> None:
    page = ready(live_page(figure("attention"), phone=True))
    handle(page, NAMES[1]).scroll_into_view_if_needed()
    x, y = centre(handle(page, NAMES[1]))
    touch = page.context.new_cdp_session(page)
    for kind, at in (("Start", 0), ("Move", 30), ("Move", 200), ("Move", 900)):
        points = [{"x": x + at, "y": y}]
        touch.send(
            "Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points}
        )
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert vectors(page)[1].tolist() == [3, 0, 1, 0]
    assert not wrong_numbers(page)


def test_a_screen_reader_hears_the_weights(live_page: Open) -> None:
    page = ready(live_page(figure("attention")))
    for _ in range(5):
        handle(page, NAMES[1]).press("Shift+ArrowLeft")
    page.locator("p.live-said", has_text="Weights").wait_for(state="attached")
    said = page.locator("p.live-said", has_text="Weights").inner_text()
    rows = table(page, "The steps from scores to weights")[1:]
    for word, *_, weight in rows:
        assert f"{word} {float(weight):.0%}".replace("%", " %") in said


FAULTS = {
    "scale": ("pieces/attention.js", "score / divisor", "score / divisor * 1.001"),
    "swapped axes": ("pieces/attention.js", "query.x * at.x", "query.y * at.x"),
    "swapped words": (
        "pieces/attention/steps.js",
        "result.weights[i], 3",
        "result.weights[2 - i], 3",
    ),
    "wrong root": ("pieces/attention.js", "Math.sqrt(WIDTH) : 1", "WIDTH : 1"),
    "off by a key": (
        "pieces/attention.js",
        "keys[i].value[place]",
        "keys[(i + 1) % 3].value[place]",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(
    live_page: Open, live_site: LiveSite, fault: str
) -> None:
    plant(live_site, *FAULTS[fault])
    page = ready(live_page(figure("attention")))
    for _ in range(4):
        handle(page, NAMES[0]).press("Shift+ArrowUp")
        handle(page, NAMES[2]).press("Shift+ArrowUp")
    slide(page, "temperature", 1)
    assert wrong_numbers(page)


@pytest.mark.parametrize("name", ["attention", "width"])
def test_accessible(live_page: Open, name: str) -> None:
    assert not audit(live_page, name)


def test_the_tab_key_reaches_all(live_page: Open) -> None:
    page = ready(live_page(figure("attention")))
    assert keys_reach(page) == [
        *(NAMES[1:]),
        NAMES[0],
        "temperature",
        "divide by √d_k = √4",
        "Start again",
    ]
