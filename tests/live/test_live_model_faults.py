"""Planted faults: a picture with swapped labels must fail."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from live_explorer import (
    follow,
)
from live_faults import plant
from live_serving import LiveSite
from test_live_model import (
    TEXT,
    check_picture,
    heads_wrong,
    opened,
)
from test_live_model_path import path_wrong

Open = Callable[..., Page]

FAULTS = [
    (
        "explorer/head-view.js",
        "rows: source, columns: source, weights",
        "rows: [...source].reverse(), columns: source, weights",
    ),
    (
        "explorer/head-view.js",
        "const start = token(model, model.vocabulary.bosId);",
        "const start = rows[0];",
    ),
    ("explorer/head-view.js", "weights.row(t)", "weights.row(0)"),
    (
        "explorer/maps.js",
        "{ button, canvas });",
        "{ button, canvas: document.createElement('canvas') });",
    ),
    (
        "explorer/stage.js",
        "scene.arcs.weights[inSource ? s : s + 1]",
        "scene.arcs.weights[s]",
    ),
    (
        "engine/heads.js",
        "run.changes.scale / Math.sqrt",
        "1.001 * run.changes.scale / Math.sqrt",
    ),
]
PATH_FAULTS = [
    ("explorer/path-attention.js", "values: kept.scaled[h]", "values: kept.scores[h]"),
    (
        "explorer/path-attention.js",
        "rows: rows(kept.key[h])",
        "rows: rows(kept.value[h])",
    ),
    (
        "explorer/path-attention.js",
        "const tokens = shown.columns",
        "const tokens = [...shown.columns].reverse()",
    ),
    (
        "explorer/path.js",
        "const hidden = record.matrix(`${name}.hidden`).row(at);",
        "const hidden = record.matrix(`${name}.linear1`).row(at);",
    ),
    (
        "explorer/path.js",
        "const order = likeliest(logits, 8);",
        "const order = likeliest(logits, 8).reverse();",
    ),
    ("explorer/strip.js", "+ 1}`.trim(), ...eight", "+ 1}`.trim(), ...eight.reverse()"),
]
PICTURE_FAULTS = [
    ("explorer/stage.js", "paths.push(line(", "if (s) paths.push(line("),
    (
        "explorer/probabilities.js",
        "const [p, q] = [step.probabilities[id]",
        "const [p, q] = [step.probabilities[order[0]]",
    ),
    (
        "pieces/model.js",
        "looks: (t) => weights?.row(t)",
        "looks: (t) => weights?.row(Math.max(0, t - 1))",
    ),
    ("explorer/tokens.js", 'mark: "␣"', 'mark: "_"'),
    ("explorer/stage.js", "`${Math.round(100 * p)}`", "`${Math.round(99 * p)}`"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda x: x[2][:30])
def test_a_fault_in_the_maps_is_seen(
    live_page: Open, live_site: LiveSite, fault
) -> None:
    plant(live_site, *fault)
    page = opened(live_page)
    if "canvas" in fault[2]:
        canvas = page.locator(".maps-head canvas").first
        assert canvas.evaluate("c => c.width") != len(TEXT) + 1
        return
    some = slice(0, 24, 5)  # of every kind
    with pytest.raises(AssertionError):
        assert heads_wrong(page, some) == []


@pytest.mark.parametrize("fault", PATH_FAULTS, ids=lambda x: x[2][:30])
def test_a_fault_in_the_path_is_seen(
    live_page: Open, live_site: LiveSite, fault
) -> None:
    plant(live_site, *fault)
    page = follow(opened(live_page), "written", 6)
    with pytest.raises(AssertionError):
        assert path_wrong(page, "written", 6) == []


@pytest.mark.parametrize("fault", PICTURE_FAULTS, ids=lambda x: x[2][:30])
def test_a_fault_in_the_picture_is_seen(
    live_page: Open, live_site: LiveSite, fault
) -> None:
    plant(live_site, *fault)
    page = opened(live_page)
    with pytest.raises(AssertionError):
        check_picture(page, TEXT)
