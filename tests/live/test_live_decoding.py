"""The bars of the next token are what the package would draw from."""

import re
from typing import Any

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS
from tformer import load_pretrained
from tformer.generate.sampling import min_p_filter, top_k_filter, top_p_filter

PIECE = "decoding"
CHAPTER = (DOCS / "chapters/decoding.md").read_text("utf-8")
KING = "the 12 likeliest pieces after “KING HENRY VI:”"


def scores() -> dict[str, tuple[list[str], torch.Tensor]]:
    """Return tokens and logits of each example, out of the blocks of the chapter."""
    names: dict[str, Any] = {"torch": torch}
    for line in re.findall(r"^ *((?:five|sure|unsure) = .*)$", CHAPTER, re.M):
        exec(line, names)
    (prompt,) = re.findall(r'pieces\.encode\("(.+?)"\)', CHAPTER)
    model, pieces, _ = load_pretrained("shakespeare")
    with torch.no_grad():
        ids = torch.tensor([pieces.encode(prompt.replace("\\n", "\n"))])
        last = model.double()(ids)[0, -1]
    logs, likeliest = last.log_softmax(-1).topk(12)
    written = [pieces.decode([i]) for i in likeliest.tolist()]
    return {
        "rather sure": (list("ABCDEFGH"), names["sure"]),
        "not sure": (list("ABCDEFGH"), names["unsure"]),
        "five tokens": (list("ABCDE"), names["five"][0]),
        KING: (written, logs.round(decimals=2).float()),
    }


EXAMPLES = scores()
FILTERS = {"top-k": top_k_filter, "top-p": top_p_filter, "min-p": min_p_filter}
OFF = {"temperature": 1.0, "top-k": None, "top-p": 1.0, "min-p": 0.0}
SETTINGS = [
    ("rather sure", OFF),
    ("five tokens", {**OFF, "temperature": 0.5}),
    ("five tokens", {**OFF, "top-k": 2}),
    ("five tokens", {**OFF, "top-p": 0.8}),
    ("five tokens", {**OFF, "top-p": 0.7}),
    ("five tokens", {**OFF, "min-p": 0.25}),
    ("not sure", {**OFF, "top-p": 0.8}),
    ("rather sure", {"temperature": 2.1, "top-k": 6, "top-p": 0.85, "min-p": 0.2}),
    ("not sure", {"temperature": 0.3, "top-k": 7, "top-p": 0.95, "min-p": 0.1}),
    (KING, {"temperature": 3.0, "top-k": 7, "top-p": 0.75, "min-p": 0.15}),
    (KING, OFF),
]


def of_package(example: str, given: dict[str, Any]) -> tuple[torch.Tensor, list[str]]:
    """Return what is drawn from, and what cut each token off."""
    logits = EXAMPLES[example][1][None]
    logits = (logits - logits.amax()) / given["temperature"]  # as in `sample`
    cut = [""] * logits.shape[1]
    for name, keep in FILTERS.items():
        if given[name]:
            logits = keep(logits, given[name])
        for i in logits[0].isinf().nonzero().flatten().tolist():
            cut[i] = cut[i] or name
    return logits.softmax(-1)[0], cut


def put(page: Page, example: str, given: dict[str, Any]) -> None:
    page.get_by_label("the scores").select_option(example)
    tokens = len(EXAMPLES[example][0])
    for name, value in given.items():
        live.slide(page, name, tokens if value is None else value)


def agrees(page: Page, example: str, given: dict[str, Any]) -> torch.Tensor:
    put(page, example, given)
    tokens, logits = EXAMPLES[example]
    before = logits.softmax(-1)
    after, cut = of_package(example, given)
    assert live.shown(page, "temperature") == f"{given['temperature']:.1f}"
    assert live.shown(page, "top-k") == str(given["top-k"] or "all")
    head, *rows = live.table(page, "The next token")
    assert head == ["token", "the model says", "drawn with", "cut off by"]
    for i, row in enumerate(rows):
        assert row[0] == tokens[i]
        assert abs(live.number(row[1]) - before[i]) < 5.1e-5
        assert abs(live.number(row[2]) - after[i]) < 5.1e-5
        assert row[3] == (cut[i] or "–")
    kept = cut.count("")
    said = page.locator("live-decoding .live-sentence").inner_text()
    count = "All" if kept == len(tokens) else str(kept)
    assert said.startswith(
        f"{count} of {len(tokens)} tokens can be drawn, {tokens[0]} "
    )
    assert f"with probability {after[0]:.2f}" in said
    if lost := sum(before[i].item() for i in range(len(tokens)) if cut[i]):
        assert f"The model itself gave {lost:.2f} to those" in said
    bars(page, before, after, cut, tokens)
    return after


def bars(
    page: Page, before: Any, after: Any, cut: list[str], tokens: list[str]
) -> None:
    """Measure the bars against the axis beside them."""
    chart = page.locator("live-decoding svg.live-chart")
    ticks = chart.locator("text.live-tick")
    at = [float(t.get_attribute("y") or "") - 5 for t in ticks.all()]
    values = [live.number(text) for text in ticks.all_text_contents()]
    full = (at[0] - at[2]) / (values[2] - values[0])  # pixels of a probability of 1
    for kind, expected in (("before", before), ("after", after)):
        heights = chart.locator(f"rect.{kind}").evaluate_all(
            "all => all.map(r => Number(r.getAttribute('height')))"
        )
        assert heights == pytest.approx([full * p.item() for p in expected], abs=0.05)
    names = chart.locator("text:not(.live-tick):not(.number):not(.cut-by)")
    assert names.all_text_contents()[: len(tokens)] == tokens
    letters = {"top-k": "k", "top-p": "p", "min-p": "m"}
    expected = [letters[name] for name in cut if name]
    assert chart.locator("text.cut-by").all_text_contents() == expected
    assert chart.locator("rect.before.cut").count() == len(expected)


@live.IN_BOTH
def test_bars_and_numbers_are_the_packages(page, request):
    some = SETTINGS[7:9] if "firefox" in request.node.name else SETTINGS
    for setting in some:
        agrees(page, *setting)


def test_of_equal_logits_k_stay(page):
    kept = page.evaluate(
        """async () => {
          const { topKFilter } = await import('/live/engine/sampling.js');
          const kept = topKFilter(Float32Array.of(1, 2, 2, 2, 0), 2);
          return [...kept].map(Number.isFinite);
        }"""
    )
    logits = torch.tensor([[1.0, 2, 2, 2, 0]])
    assert sum(kept) == top_k_filter(logits, 2).isfinite().sum()
    assert not kept[0]
    assert not kept[4]


def test_a_hundred_tokens_are_drawn_as_the_package_draws(page):
    setting = {**OFF, "temperature": 1.5, "top-k": 6}
    p = agrees(page, "rather sure", setting).double()
    for drawn in (100, 200):
        page.get_by_role("button", name="Draw 100 tokens").click()
        head, *rows = live.table(page, "The next token")
        assert head[4] == f"drawn, of {drawn}"
        counts = [int(row[4]) for row in rows]
        assert sum(counts) == drawn
        for count, chance in zip(counts, p.tolist(), strict=True):
            error = (drawn * chance * (1 - chance)) ** 0.5
            assert abs(count - drawn * chance) <= 4 * error
        said = page.locator("live-decoding .live-sentence").inner_text()
        assert said.endswith(f"Of {drawn} tokens, {counts[0]} were A.")
    assert counts[6:] == [0, 0]
    page.get_by_role("button", name="Forget them").click()
    assert len(live.table(page, "The next token")[0]) == 4


test_a_planted_fault_is_seen = live.planted(
    "decoding",
    lambda page: agrees(page, *SETTINGS[7]),
    ("engine/sampling.js", "Math.log(minP)", "-0.1 / minP"),
    ("engine/sampling.js", "(x - largest) / Math", "(x - largest) * Math"),
    ("pieces/decoding.js", "after: after[i]", "after: before[i]"),
    ("pieces/decoding.js", 'Filter], ["min-p"', 'Filter], ["top-p"'),
    ("pieces/decoding/examples.js", "4.0, 2.2", "4.0, 2.3"),
    ("pieces/decoding/bars.js", "height: BOTTOM - y(before)", "height: y(before)"),
    ("pieces/decoding/bars.js", "text: token", "text: token + 1"),
)
