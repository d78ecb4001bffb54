"""The explorer shows what the package computes, whatever the reader does with it."""

import re
from datetime import date

import torch
from playwright.sync_api import Page

import live_driving as live
from live_explorer import (
    CROSS,
    HEADS,
    TEXT,
    arcs,
    case_of,
    check_picture,
    check_weights,
    computed,
    follow,
    marks,
    pick,
    row,
    settled,
    type_text,
    written_by,
)
from tformer.tasks.dates import split_days

PIECE = "model"
TEXTS = [
    TEXT,
    "August 4, 2024",
    "3 февраля 1974 г.",
    "segunda-feira, 28 de fevereiro de 2005",
]
PIXELS = """canvas => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
  return [...Array(canvas.height).keys()].map(y =>
    [...Array(canvas.width).keys()].map(x => data[4 * (y * canvas.width + x)]))
}"""
ROW = "x => [...x.parentElement.children].indexOf(x)"


@live.IN_BOTH
def test_texts_are_written_as_by_the_package(page):
    for text in TEXTS:
        type_text(page, text)
        assert "".join(row(page, "written")) == written_by(text) + "▮"
        check_picture(page, text)
        follow(page, "written", 3)
        check_picture(page, text)


def test_examples_are_dates_of_the_test_and_are_right(page):
    examples = page.get_by_role("group", name="Examples").get_by_role("button")
    for chip in examples.all():
        chip.click()
        settled(page)
        text, asked = "".join(row(page, "written")), chip.inner_text()
        assert text == written_by(asked) + "▮"
        day = date.fromisoformat(text[:-1])
        # The first is the book's own, and the model has seen its day.
        assert (day in split_days()["test"]) == (asked != TEXT)
        numbers = {day.year, day.month, day.day}
        assert set(map(int, re.findall(r"\d+", asked))) <= numbers


def check_heads(page: Page, some: slice = slice(None)) -> None:
    """Compare the table of each head, and its arcs, with the package."""
    written = row(page, "written")
    theirs = computed(case_of(TEXT, written))
    for spoken, name, head in HEADS[some]:
        pick(page, spoken)
        assert page.locator(".head-view h2").inner_text() == spoken
        weights = theirs[f"{name}:weights"][head]
        heading, queries = check_weights(page, weights)
        own = name.startswith("decoder") and "cross" not in name
        assert heading == (["▷", *written[:-1]] if own else marks(TEXT)), spoken
        assert queries == (marks(TEXT) if "encoder" in name else written), spoken
        if drawn := arcs(page):
            at = page.locator(".head-row[aria-current]").evaluate(ROW)
        for s, weight in drawn.items():
            expected = weights[at, s + ("decoder" in name)].item()
            assert abs(weight - expected) <= 0.002, spoken


def test_every_head_shows_its_weights(page):
    check_heads(page)


def check_maps(page: Page) -> None:
    """The small maps have the colours of their weights: the darker, the larger."""
    theirs = computed(case_of(TEXT, row(page, "written")))
    for spoken, name, head in HEADS:
        button = page.locator(".maps-head").and_(page.get_by_label(spoken))
        red = torch.tensor(button.locator("canvas").evaluate(PIXELS)).double()
        weights = theirs[f"{name}:weights"][head]
        assert red.shape == weights.shape
        order = weights.flatten().argsort()
        assert (red.flatten()[order].diff() <= 1).all(), spoken
        assert red.flatten()[order[0]] - red.flatten()[order[-1]] > 60


def test_a_map_has_the_colours_of_its_weights(page):
    check_maps(page)


def test_the_row_is_told_in_words(page):
    row_of_5 = computed(case_of(TEXT, row(page, "written")))[f"{CROSS}:weights"][2, 6]
    weights, places = row_of_5.topk(2)
    assert [TEXT[s] for s in places] == ["m", "a"]
    first, second = (round(100 * x) for x in weights.tolist())
    words = page.locator(".head-words").inner_text()
    told = f"{first} % to m (9) and {second} % to a (10)"
    assert words == f"To write 5 (7) it gives {told}."


STAGE, HEAD = "explorer/stage.js", "explorer/head-view.js"
test_a_fault_in_the_tables_is_seen = live.planted(
    PIECE,
    lambda page: check_heads(settled(page), slice(0, 24, 5)),  # some of every kind
    (HEAD, "rows: source, columns", "rows: [...source].reverse(), columns"),
    (HEAD, "= token(model, model.vocabulary.bosId);", "= rows[0];"),
    (HEAD, "weights.row(t)", "weights.row(0)"),
    (STAGE, "scene.arcs.weights[inSource ? s : s + 1]", "scene.arcs.weights[s]"),
)
test_a_fault_in_the_maps_is_seen = live.planted(
    PIECE,
    lambda page: check_maps(settled(page)),
    (
        "explorer/maps.js",
        "{ button, canvas });",
        "{ button, canvas: document.createElement('canvas') });",
    ),
)
test_a_fault_in_the_picture_is_seen = live.planted(
    PIECE,
    lambda page: check_picture(settled(page), TEXT),
    (STAGE, "paths.push(line(", "if (s) paths.push(line("),
    (STAGE, "`${Math.round(100 * p)}`", "`${Math.round(99 * p)}`"),
    ("explorer/probabilities.js", "step.probabilities[id]", "step.probabilities[3]"),
    ("pieces/model.js", "weights?.row(t)", "weights?.row(Math.max(0, t - 1))"),
    ("explorer/tokens.js", 'mark: "␣"', 'mark: "_"'),
)
