"""Every step of a token's path shows the package's numbers, and the line beside it."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from live_driving import still
from live_explorer import (
    case_of,
    close,
    computed,
    follow,
    loaded,
    marks,
    row,
    settled,
    steps,
)
from live_serving import ROOT
from test_live_model import TEXT, opened

Open = Callable[..., Page]

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


def path_wrong(page: Page, side: str, at: int) -> list[str]:
    """Compare every number of every step of a token's path with the package's."""
    written = row(page, "written")
    theirs = computed(case_of(TEXT, written))
    stack = "encoder" if side == "source" else "decoder"
    keys_of = {
        "encoder": marks(TEXT),
        "self": ["▷", *written[:-1]],
        "cross": marks(TEXT),
    }
    wrong = []

    def check(where: str, shown, key: str, digits: int) -> None:
        value = theirs[key]
        if key.partition(":")[2] in (
            "query",
            "scores",
            "scaled",
            "masked",
            "weights",
            "heads",
        ):
            value = value[2, at]
        elif key.endswith((":key", ":value")):
            value = value[2]
        else:
            value = value[at]
        labels = []
        if shown and isinstance(shown[0], tuple):
            labels = [mark for mark, _ in shown]
            shown = [x for _, x in shown]
            kind = (
                "encoder" if "encoder" in key else "cross" if "cross" in key else "self"
            )
            if labels != keys_of[kind]:
                wrong.append(f"{where}: labels {labels}")
        rows = shown if value.ndim == 2 else [shown]
        if not all(
            close(x, y, digits)
            for x, y in zip(rows, value.view(len(rows), -1), strict=True)
        ):
            wrong.append(where)

    for layer in range(2):
        names = ["attention", *(["cross_attention"] if stack == "decoder" else [])]
        for part, expected in [
            *((n, ATTENTION) for n in names),
            ("feed_forward", FEED_FORWARD),
        ]:
            block = f"{stack}.blocks.{layer}"
            name = f"{block}.{part}"
            shown = steps(page, name)
            if set(shown) != set(expected):
                wrong.append(f"{name}: steps {list(shown)}")
                continue
            for title, parts in expected.items():
                for label, (key, digits) in parts.items():
                    full = key.format(a=name, after=f"{block}.after_{part}")
                    check(
                        f"{name}, {title}, {label}", shown[title][label], full, digits
                    )
    side_name = "src" if stack == "encoder" else "tgt"
    shown = steps(page, "embedding")
    check("embedding", shown["Embedding"]["embedding"], f"{side_name}_embedding", 4)
    check(
        "sum", shown["+ position"]["embedding + position"], f"{side_name}_positions", 4
    )
    shown = steps(page, "output")
    check("last norm", shown["Last norm"]["normalised"], f"{stack}.norm", 4)
    if stack == "decoder":
        for title, label, key, digits in (
            ("Logits", "logits", "logits", 2),
            ("Softmax", "probabilities", "probabilities", 4),
        ):
            order = theirs["logits"][at].argsort(descending=True)[:8]
            vocabulary = loaded()[1]
            names = [
                "▮" if i == 2 else vocabulary.characters[i - 3] for i in order.tolist()
            ]
            got = shown[title][label]
            if [m for m, _ in got] != names or not close(
                [x for _, x in got], theirs[key][at, order], digits
            ):
                wrong.append(f"{title}: {got}")
    return wrong


@pytest.mark.parametrize(("side", "at"), [("written", 6), ("source", 8)])
def test_every_step_of_a_path_shows_the_packages_numbers(
    live_page: Open, side: str, at: int
) -> None:
    page = opened(live_page)
    follow(page, side, at)
    assert path_wrong(page, side, at) == []


def test_the_line_that_computes_a_step_stands_beside_it_and_is_lit(
    live_page: Open,
) -> None:
    page = opened(live_page)
    seen = 0
    for stage in page.locator(".path-stage").all():
        if stage.get_attribute("aria-expanded") != "true":
            stage.click()
            settled(page)
        for step in page.locator(".path-step").all():
            quotes = step.locator(".path-quote")
            assert quotes.count(), step.inner_text()
            for quote in quotes.all():
                file, line = re.fullmatch(
                    r"(\S+), line (\d+)", quote.locator("a").inner_text()
                ).groups()
                source = (ROOT / "tformer" / file).read_text("utf-8").split("\n")
                code = quote.locator("code").inner_text().split("\n")
                assert [x.strip() for x in code] == [
                    x.strip() for x in source[int(line) - 1 : int(line) - 1 + len(code)]
                ]
                seen += 1
    assert seen > 40
    step = page.locator(".path-step").first
    colour = "x => getComputedStyle(x).backgroundColor"
    code = step.locator("code").first
    page.evaluate("() => scrollTo(0, 0)")
    expect(step).not_to_have_class(re.compile("looked-at"))
    dark = still(page).locator(".path-step code").first.evaluate(colour)
    step.locator("a").first.focus()
    expect(code).not_to_have_css("background-color", dark)
