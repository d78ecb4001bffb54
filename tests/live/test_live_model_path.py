"""Every step of a token's path shows the package's numbers, and the line beside it."""

import re

import pytest
from playwright.sync_api import Page, expect

from live_driving import planted, still
from live_explorer import (
    TEXT,
    case_of,
    close,
    computed,
    follow,
    ids_written,
    marks,
    row,
    settled,
    steps,
)
from live_serving import ROOT

PIECE = "model"
ATTENTION = {  # title of a step → name of a part → the package's key, digits
    "Norm": {"normalised": ("{a}_norm", 4)},
    "Query, keys, values": {
        "query": ("{a}:query", 4),
        "keys": ("{a}:key", 4),
        "values": ("{a}:value", 4),
    },
    "Q · K": {"scores": ("{a}:scores", 2)},
    "Scale: × 0.2500": {"scaled scores": ("{a}:scaled", 2)},
    "Mask": {"masked scores": ("{a}:masked", 2)},
    "Softmax": {"weights": ("{a}:weights", 4)},
    "Weighted sum": {"head 3": ("{a}:heads", 4)},
    "Heads joined": {
        "heads side by side": ("{a}:joined", 4),
        "output of the attention": ("{a}", 4),
    },
    "+ what came in": {"x + result": ("{after}", 4)},
}
FEED_FORWARD = {
    "Norm": {"normalised": ("{a}_norm", 4)},
    "Wider, and ReLU": {"hidden": ("{a}.hidden", 4)},
    "Back to the width": {"output of the network": ("{a}", 4)},
    "+ what came in": {"x + result": ("{after}", 4)},
}
EMBEDDING = {
    "Embedding": {"embedding": ("{side}_embedding", 4)},
    "+ position": {"embedding + position": ("{side}_positions", 4)},
}
OUTPUT = {"Last norm": {"normalised": ("{stack}.norm", 4)}}
LIKELIEST = {"Logits": ("logits", 2), "Softmax": ("probabilities", 4)}
OF_A_HEAD = ("query", "scores", "scaled", "masked", "weights", "heads")


def check_path(page: Page, which: str, at: int) -> None:
    """Compare every number of every step of a token's path with the package's."""
    written = row(page, "written")
    theirs = computed(case_of(TEXT, written))
    side, stack = ("src", "encoder") if which == "source" else ("tgt", "decoder")

    def check(stage: str, expected: dict, **names: str) -> dict:
        shown = steps(page, stage)
        for title, parts in expected.items():
            for label, (key, digits) in parts.items():
                check_part(shown[title][label], key.format(**names), digits)
        return shown

    def check_part(shown: list, key: str, digits: int) -> None:
        of_head = key.partition(":")[2]
        value = theirs[key]
        value = value[2] if of_head in (*OF_A_HEAD, "key", "value") else value
        value = value if of_head in ("key", "value") else value[at]
        if isinstance(shown[0], tuple):
            labels, shown = zip(*shown, strict=True)
            own = stack == "decoder" and "cross" not in key
            assert list(labels) == (["▷", *written[:-1]] if own else marks(TEXT)), key
        rows = shown if value.ndim == 2 else [shown]
        for numbers, row_ in zip(rows, value.view(len(rows), -1), strict=True):
            assert close(numbers, row_, digits), key

    for block in (f"{stack}.blocks.{layer}" for layer in range(2)):
        for part in ("attention", "cross_attention", "feed_forward"):
            if part == "cross_attention" and stack == "encoder":
                continue
            expected = FEED_FORWARD if part == "feed_forward" else ATTENTION
            names = {"a": f"{block}.{part}", "after": f"{block}.after_{part}"}
            assert set(check(f"{block}.{part}", expected, **names)) == set(expected)
    check("embedding", EMBEDDING, side=side)
    shown = check("output", OUTPUT, stack=stack)
    if stack == "decoder":
        order = theirs["logits"][at].argsort(descending=True)[:8]
        for title, (key, digits) in LIKELIEST.items():
            names, numbers = zip(*shown[title][key], strict=True)
            assert ids_written(names) == order.tolist()
            assert close(numbers, theirs[key][at, order], digits)


@pytest.mark.parametrize(("side", "at"), [("written", 6), ("source", 8)])
def test_every_step_of_a_path_shows_the_packages_numbers(page, side, at):
    check_path(follow(page, side, at), side, at)


ATTEND, PATH = "explorer/path-attention.js", "explorer/path.js"
test_a_planted_fault_is_seen = planted(
    PIECE,
    lambda page: check_path(follow(settled(page), "written", 6), "written", 6),
    (ATTEND, "values: kept.scaled[h]", "values: kept.scores[h]"),
    (ATTEND, "rows: rows(kept.key[h])", "rows: rows(kept.value[h])"),
    (ATTEND, "= shown.columns", "= [...shown.columns].reverse()"),
    (PATH, "matrix(`${name}.hidden`)", "matrix(`${name}.linear1`)"),
    (PATH, "likeliest(logits, 8);", "likeliest(logits, 8).reverse();"),
    ("explorer/strip.js", "+ 1}`.trim(), ...eight", "+ 1}`.trim(), ...eight.reverse()"),
)


@pytest.mark.nightly
def test_the_line_that_computes_a_step_stands_beside_it_and_is_lit(page):
    seen = 0
    for stage in page.locator(".path-stage").all():
        if stage.get_attribute("aria-expanded") != "true":
            stage.click()
            settled(page)
        for step in page.locator(".path-step").all():
            quotes = step.locator(".path-quote").all()
            assert quotes, step.inner_text()
            for quote in quotes:
                place = quote.locator("a").inner_text()
                file, line = re.fullmatch(r"(\S+), line (\d+)", place).groups()
                source = (ROOT / "tformer" / file).read_text("utf-8").split("\n")
                code = quote.locator("code").inner_text().split("\n")
                there = source[int(line) - 1 : int(line) - 1 + len(code)]
                assert [x.strip() for x in code] == [x.strip() for x in there]
                seen += 1
    assert seen > 40
    step = page.locator(".path-step").first
    code = step.locator("code").first
    page.evaluate("() => scrollTo(0, 0)")
    expect(step).not_to_have_class(re.compile("looked-at"))
    dark = still(page).evaluate(
        "() => getComputedStyle(document.querySelector('.path-step code'))"
        ".backgroundColor"
    )
    step.locator("a").first.focus()
    expect(code).not_to_have_css("background-color", dark)
