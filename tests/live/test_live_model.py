"""The explorer shows what the package computes, whatever the reader does with it."""

import re
from collections.abc import Callable
from datetime import date

import pytest
import torch
from playwright.sync_api import Page

from live_driving import number, ready, table
from live_explorer import (
    CROSS,
    HEADS,
    MODEL,
    arcs,
    bars,
    case_of,
    close,
    computed,
    follow,
    ids_of,
    lines,
    loaded,
    marks,
    pick,
    row,
    settled,
    type_text,
)
from tformer import greedy
from tformer.tasks.dates import split_days

Open = Callable[..., Page]
TEXT = "jeudi 3 mai 1979"
TEXTS = [
    TEXT,
    "August 4, 2024",
    "3 февраля 1974 г.",
    "segunda-feira, 28 de fevereiro de 2005",
]
BOTH = ["chromium", "firefox"]


def opened(live_page: Open, **options) -> Page:
    return settled(ready(live_page(MODEL, **options)))


def written_by(text: str, name: str = "dates") -> str:
    """What the package writes."""
    model, vocabulary = loaded(name)
    source = torch.tensor([ids_of(text)])
    ids = greedy(model, source, max_len=11, eos_id=2, bos_id=1)
    return vocabulary.decode(ids[0].tolist())


def check_picture(page: Page, text: str, **changes) -> None:
    """Hold tokens, lines, bars and the numbers below the tokens to the package."""
    written = row(page, "written")
    assert row(page, "source") == marks(text)
    theirs = computed(case_of(text, written, **changes))
    p = theirs["probabilities"]
    shown = page.locator(".stage-written small").all_inner_texts()
    vocabulary = loaded()[1]
    ids = [2 if c == "▮" else vocabulary.encode(c)[0] for c in written]
    for t, (percent, i) in enumerate(zip(shown, ids, strict=True)):
        assert abs(float(percent) / 100 - p[t, i].item()) <= 0.0051
    at = [
        x.get_attribute("aria-current")
        for x in page.locator(".stage-written button").all()
    ]
    here = at.index("true")
    for mark, value in bars(page).items():
        i = (
            2
            if mark == "▮"
            else 1
            if mark == "▷"
            else ids_of(mark.replace("␣", " "))[0]
        )
        assert abs(value - p[here, i].item()) <= 0.00051, (mark, value)
    weights = theirs[f"{CROSS}:weights"][2]
    drawn = lines(page)
    assert set(drawn) == {tuple(x) for x in (weights >= 0.03).nonzero().tolist()}
    for (t, s), weight in drawn.items():
        assert abs(weight - weights[t, s].item()) <= 0.002


@pytest.mark.parametrize("live_page", BOTH, indirect=True)
def test_texts_are_written_as_by_the_package(live_page: Open) -> None:
    page = opened(live_page)
    for text in TEXTS:
        type_text(page, text)
        assert "".join(row(page, "written")) == written_by(text) + "▮"
        check_picture(page, text)
        follow(page, "written", 3)
        check_picture(page, text)


def test_examples_are_dates_of_the_test_and_are_right(live_page: Open) -> None:
    page = opened(live_page)
    examples = page.get_by_role("group", name="Examples").get_by_role("button")
    for chip in examples.all():
        chip.click()
        settled(page)
        text = "".join(row(page, "written"))
        assert text == written_by(chip.inner_text()) + "▮"
        day = date.fromisoformat(text[:-1])
        # The first is the book's own, and the model has seen its day.
        assert (day in split_days()["test"]) == (chip.inner_text() != TEXT)
        assert {str(int(x)) for x in re.findall(r"\d+", chip.inner_text())} <= {
            str(day.year),
            str(day.month),
            str(day.day),
        }


def heads_wrong(page: Page, some: slice = slice(None)) -> list[str]:
    """Compare the table of each head with the package; return those that differ."""
    theirs = computed(case_of(TEXT, row(page, "written")))
    wrong = []
    for spoken, name, head in HEADS[some]:
        pick(page, spoken)
        heading, *rows = table(page, "Weights: a row for each query")
        weights = theirs[f"{name}:weights"][head]
        written, start = row(page, "written"), ["▷", *row(page, "written")[:-1]]
        own = name.startswith("decoder") and "cross" not in name
        keys = start if own else marks(TEXT)
        queries = marks(TEXT) if "encoder" in name else written
        good = heading[1:] == keys and [x[0] for x in rows] == queries
        good &= page.locator(".head-view h2").inner_text() == spoken
        good &= all(
            close([number(x) for x in cells[1:]], weights[t], 3)
            for t, cells in enumerate(rows)
        )
        for s, weight in arcs(page).items():
            at = page.locator(".head-row[aria-current]").evaluate(
                "x => [...x.parentElement.children].indexOf(x)"
            )
            expected = weights[at, s + ("decoder" in name)].item()
            good &= abs(weight - expected) <= 0.002
        if not good:
            wrong.append(spoken)
    return wrong


def test_every_head_shows_its_weights(live_page: Open) -> None:
    assert heads_wrong(opened(live_page)) == []


def test_a_map_has_the_colours_of_its_weights(live_page: Open) -> None:
    """The small maps and the large one: the darker, the larger."""
    page = opened(live_page)
    theirs = computed(case_of(TEXT, row(page, "written")))
    for spoken, name, head in HEADS:
        canvas = (
            page.locator(".maps-head").and_(page.get_by_label(spoken)).locator("canvas")
        )
        red = torch.tensor(canvas.evaluate(PIXELS), dtype=torch.float64)
        weights = theirs[f"{name}:weights"][head]
        assert red.shape == weights.shape
        order = weights.flatten().argsort()
        assert (red.flatten()[order].diff() <= 1).all(), spoken
        assert red.flatten()[order[0]] - red.flatten()[order[-1]] > 60


PIXELS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  return [...Array(canvas.height).keys()].map(y =>
    [...Array(canvas.width).keys()].map(x => data[4 * (y * canvas.width + x)]))
}"""


def test_the_row_is_told_in_words(live_page: Open) -> None:
    page = opened(live_page)
    row_of_5 = computed(case_of(TEXT, row(page, "written")))[f"{CROSS}:weights"][2, 6]
    words = page.locator(".head-words").inner_text()
    most = int(row_of_5.argmax())
    assert TEXT[most] == "m"
    assert (
        words
        == f"To write 5 (7) it gives {round(100 * row_of_5[most].item())} % to m (9)."
    )
