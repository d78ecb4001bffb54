"""The explorer shows what the package computes, whatever the reader does with it."""

import re
from collections.abc import Callable
from datetime import date

import pytest
import torch
from playwright.sync_api import Page

from live_driving import number, ready, slide, table
from live_explorer import (
    CROSS,
    HEADS,
    MODEL,
    arcs,
    bars,
    case_of,
    chance,
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
    steps,
    type_text,
)
from live_faults import plant
from live_serving import ROOT, LiveSite
from parity import check_written
from tformer import greedy
from tformer.generate.sampling import top_k_filter
from tformer.tasks.dates import split_days

Open = Callable[..., Page]
TEXT = "jeudi 3 mai 1979"
TEXTS = [TEXT, "August 4, 2024", "3 февраля 1974 г.", "segunda-feira, 28 de fevereiro de 2005"]
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
    at = [x.get_attribute("aria-current") for x in page.locator(".stage-written button").all()]
    here = at.index("true")
    for mark, value in bars(page).items():
        i = 2 if mark == "▮" else 1 if mark == "▷" else ids_of(mark.replace("␣", " "))[0]
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
            str(day.year), str(day.month), str(day.day)
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
        keys = start if "decoder" in name and "self" in name else marks(TEXT)
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
        canvas = page.locator(".maps-head").and_(page.get_by_label(spoken)).locator("canvas")
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
    assert words == f"To write 5 (7) it gives {round(100 * row_of_5[most].item())} % to m (9)."


ATTENTION = {  # title of a step → name of a part → the package's key, digits
    "Norm": {"normalised": ("{residual}.norm", 4)},
    "Query, keys, values": {"query": ("{a}:query", 4), "keys": ("{a}:key", 4), "values": ("{a}:value", 4)},
    "Q · K": {"scores": ("{a}:scores", 2)},
    "Scale: × 0.2500": {"scaled scores": ("{a}:scaled", 2)},
    "Mask": {"masked scores": ("{a}:masked", 2)},
    "Softmax": {"weights": ("{a}:weights", 4)},
    "Weighted sum": {"head 3": ("{a}:heads", 4)},
    "Heads joined": {"heads side by side": ("{a}:joined", 4), "output of the attention": ("{a}", 4)},
    "+ what came in": {"x + result": ("{residual}", 4)},
}
FEED_FORWARD = {
    "Norm": {"normalised": ("{residual}.norm", 4)},
    "Wider, and ReLU": {"hidden": ("{a}.hidden", 4)},
    "Back to the width": {"output of the network": ("{a}", 4)},
    "+ what came in": {"x + result": ("{residual}", 4)},
}


def path_wrong(page: Page, side: str, at: int) -> list[str]:
    """Compare every number of every step of a token's path with the package's."""
    written = row(page, "written")
    theirs = computed(case_of(TEXT, written))
    stack = "encoder" if side == "source" else "decoder"
    keys_of = {"encoder": marks(TEXT), "self": ["▷", *written[:-1]], "cross": marks(TEXT)}
    wrong = []

    def check(where: str, shown, key: str, digits: int) -> None:
        value = theirs[key]
        if key.partition(":")[2] in ("query", "scores", "scaled", "masked", "weights", "heads"):
            value = value[2, at]
        elif key.endswith((":key", ":value")):
            value = value[2]
        else:
            value = value[at]
        labels = []
        if shown and isinstance(shown[0], tuple):
            labels = [mark for mark, _ in shown]
            shown = [x for _, x in shown]
            kind = "encoder" if "encoder" in key else "cross" if "cross" in key else "self"
            if labels != keys_of[kind]:
                wrong.append(f"{where}: labels {labels}")
        rows = shown if value.ndim == 2 else [shown]
        if not all(close(x, y, digits) for x, y in zip(rows, value.view(len(rows), -1), strict=True)):
            wrong.append(where)

    for layer in range(2):
        names = ["self_attn"] if stack == "encoder" else ["self_attn", "cross_attn"]
        for part, expected in [*((n, ATTENTION) for n in names), ("feed_forward", FEED_FORWARD)]:
            name = f"{stack}.layers.{layer}.{part}"
            shown = steps(page, name)
            if set(shown) != set(expected):
                wrong.append(f"{name}: steps {list(shown)}")
                continue
            for title, parts in expected.items():
                for label, (key, digits) in parts.items():
                    full = key.format(a=name, residual=f"{name}_residual")
                    check(f"{name}, {title}, {label}", shown[title][label], full, digits)
    side_name = "src" if stack == "encoder" else "tgt"
    shown = steps(page, "embedding")
    check("embedding", shown["Embedding"]["embedding"], f"{side_name}_embedding", 4)
    check("sum", shown["+ position"]["embedding + position"], f"{side_name}_positions", 4)
    shown = steps(page, "output")
    check("last norm", shown["Last norm"]["normalised"], f"{stack}.norm", 4)
    if stack == "decoder":
        for title, label, key, digits in (("Logits", "logits", "logits", 2), ("Softmax", "probabilities", "probabilities", 4)):
            order = theirs["logits"][at].argsort(descending=True)[:8]
            vocabulary = loaded()[1]
            names = ["▮" if i == 2 else vocabulary.characters[i - 3] for i in order.tolist()]
            got = shown[title][label]
            if [m for m, _ in got] != names or not close([x for _, x in got], theirs[key][at, order], digits):
                wrong.append(f"{title}: {got}")
    return wrong


@pytest.mark.parametrize(("side", "at"), [("written", 6), ("source", 8)])
def test_every_step_of_a_path_shows_the_packages_numbers(live_page: Open, side: str, at: int) -> None:
    page = opened(live_page)
    follow(page, side, at)
    assert path_wrong(page, side, at) == []


def test_the_line_that_computes_a_step_stands_beside_it_and_is_lit(live_page: Open) -> None:
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
                file, line = re.fullmatch(r"(\S+), line (\d+)", quote.locator("a").inner_text()).groups()
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
    page.wait_for_timeout(400)
    dark = code.evaluate(colour)
    step.locator("a").first.focus()
    page.wait_for_timeout(400)
    assert code.evaluate(colour) != dark


CHANGES = [
    ("one head off", {"off": (f"{CROSS}:2",)}),
    ("all cross heads of the last layer off", {"off": tuple(f"{CROSS}:{h}" for h in range(4))}),
    ("no 1/√d_k", {"scale": 4.0}),
    ("no positions", {"positions": 0.0}),
    ("mask off", {"causal": False}),
]


def check_board(page: Page, written: list[str]) -> None:
    """The unbroken text above, the other below, and a mark at each that differs."""
    trained = marks(written_by(TEXT))
    rows = page.locator(".compare-row:visible")
    read = "x => [...x.querySelectorAll('.compare-cell')].map(c => [c.querySelector('bdi').innerText, c.classList.contains('changed') && c.innerText.includes('≠')])"
    assert [m for m, _ in rows.nth(0).evaluate(read)] == trained
    assert rows.nth(0).locator(".compare-name").inner_text() == "as trained"
    assert rows.nth(1).locator(".compare-name").inner_text() == "now"
    differ = [i for i, c in enumerate(written) if trained[i : i + 1] != [c]]
    missing = range(len(written), len(trained))
    now = [[c, i in differ] for i, c in enumerate(written)] + [["·", True] for _ in missing]
    assert rows.nth(1).evaluate(read) == now
    verdict = page.locator(".compare-verdict").inner_text()
    differ += missing
    if written == ["▮"]:
        assert verdict == "It writes nothing: the end token (▮) comes first."
    elif differ:
        assert verdict.endswith(f"at {', '.join(str(i + 1) for i in differ)}.")
    else:
        assert verdict.startswith("The same text.")


@pytest.mark.parametrize(("name", "changes"), CHANGES)
def test_what_is_broken_breaks_as_in_the_package(live_page: Open, name: str, changes) -> None:
    page = opened(live_page)
    page.get_by_role("group", name="Experiments").get_by_role("button", name=name).click()
    settled(page)
    written = row(page, "written")
    case = case_of(TEXT, written, **changes)
    ids = [2 if c == "▮" else loaded()[1].encode(c)[0] for c in written]
    check_written(loaded()[0], case, ids, 1e-3)
    check_board(page, written)
    theirs = computed(case)
    for spoken, module, head in HEADS[8:16:3] + HEADS[16:]:
        pick(page, spoken)
        _, *rows = table(page, "Weights: a row for each query")
        for t, cells in enumerate(rows):
            assert close([number(x) for x in cells[1:]], theirs[f"{module}:weights"][head, t], 3)
    page.get_by_role("button", name="Undo all").click()
    settled(page)
    assert page.locator(".compare-verdict").inner_text() == "Nothing is changed."
    assert "".join(row(page, "written")) == written_by(TEXT) + "▮"


def test_sliders_and_switches_do_what_they_say(live_page: Open) -> None:
    page = opened(live_page)
    slide(page, "Scale", 2)
    slide(page, "Positional encoding", 0.5)
    pick(page, "Cross-attention, layer 2, head 1")
    page.keyboard.press("Delete")
    page.get_by_role("button", name="all off: Masked self-attention, layer 1").click()
    settled(page)
    off = [f"decoder.layers.0.self_attn:{h}" for h in range(4)]
    written = row(page, "written")
    changes = {"scale": 2.0, "positions": 0.5, "off": (f"{CROSS}:0", *off)}
    check_board(page, written)
    case = case_of(TEXT, written, **changes)
    ids = [2 if c == "▮" else loaded()[1].encode(c)[0] for c in written]
    check_written(loaded()[0], case, ids, 1e-3)
    assert page.locator(".maps-head.off").count() == 5
    page.get_by_role("switch", name="Causal mask").uncheck()
    settled(page)
    written = row(page, "written")
    case = case_of(TEXT, written, causal=False, **changes)
    pick(page, "Masked self-attention, layer 2, head 1")
    _, *rows = table(page, "Weights: a row for each query")
    weights = computed(case)["decoder.layers.1.self_attn:weights"][0]
    assert weights.triu(1).sum() > 0.1
    for t, cells in enumerate(rows):
        assert close([number(x) for x in cells[1:]], weights[t], 3)


def test_temperature_and_top_k_change_the_probabilities(live_page: Open) -> None:
    page = opened(live_page)
    slide(page, "Positional encoding", 0.5)
    slide(page, "Temperature", 2)
    slide(page, "Top-k", 3)
    texts = set()
    for _ in range(4):
        page.get_by_role("button", name="Draw again").click()
        settled(page)
        follow(page, "written", 2)
        written = row(page, "written")
        texts.add("".join(written))
        logits = computed(case_of(TEXT, written, positions=0.5))["logits"][2] / 2
        p = top_k_filter(logits[None], 3).softmax(-1)[0]
        for mark, value in bars(page).items():
            i = 2 if mark == "▮" else ids_of(mark)[0]
            assert abs(value - p[i].item()) <= 0.0006 or i in (2,)
        assert all(p[ids_of(c)[0]] > 0 for c in written[2:3] if c != "▮")
    assert len(texts) > 1


def test_trained_without_the_mask_is_another_model(live_page: Open) -> None:
    page = opened(live_page)
    page.get_by_role("radio", name="trained without the mask").check()
    page.locator(".compare-name", has_text="given the answer").wait_for()
    settled(page)
    written = row(page, "written")
    check_board(page, written)
    model = loaded("dates-without-mask")[0]
    case = case_of(TEXT, written, causal=False)
    ids = [2 if c == "▮" else loaded()[1].encode(c)[0] for c in written]
    check_written(model, case, ids, 1e-3)
    answer = list(written_by(TEXT))
    given = computed(case_of(TEXT, [*answer, "▮"], causal=False), "dates-without-mask")
    told = given["logits"].argmax(-1).tolist()
    cells = page.locator(".compare-row:visible").nth(2).locator("bdi").all_inner_texts()
    assert cells == ["▮" if i == 2 else loaded()[1].characters[i - 3] for i in told]
    assert page.get_by_role("switch", name="Causal mask").is_disabled()
