"""The tree of the beam search is the package's search."""

import itertools
import math
import re

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from tformer import CausalLM, beam_search, transformer_block
from tformer.nn import TokenEmbedding

PIECE = "beam"
TOKENS = ["a", "b", ".", "start"]
FATES = {"grows": "grows on", "ended": "has ended", "dropped": "dropped"}


class Table(CausalLM):
    """The chapter's: probabilities that depend on the newest token only."""

    def __init__(self, first: float) -> None:
        blocks = [transformer_block(4, 1, 4)]
        super().__init__(TokenEmbedding(4, 4), blocks, None, max_len=1000)
        rows = [[0.3, 0.3, 0.4, 0], [0.05, 0.05, 0.9, 0], [0, 0, 1, 0]]
        self.scores = torch.tensor([*rows, [first, 1 - first, 0, 0]]).log()
        self.calls = 0

    def forward(self, ids, *, cache=None, last_only=False):
        self.calls += 1
        return self.scores[ids[:, -1:]]


def of_text(text: str, first: float) -> float:
    """Return the log-probability of a text, from the table."""
    table = Table(first).scores
    ids = [3, *map(TOKENS.index, text)]
    return sum(table[a, b].item() for a, b in itertools.pairwise(ids))


def put(page: Page, K: int, first: float, length: int, alpha: str) -> None:
    live.slide(page, "beam width K", K)
    live.slide(page, "P(a) at the start", first)
    live.slide(page, "tokens at most", length)
    live.choose(page, alpha)
    assert live.shown(page, "P(a) at the start") == f"{first:.2f}"
    while page.get_by_role("button", name="Next step").is_enabled():
        live.press(page, "Next step")


def expected_steps(K: int, first: float, length: int, steps: int) -> list[list[tuple]]:
    """Return sum and fate of all candidates of each step, from the definition."""
    live, found = [""], []
    for step in range(1, steps + 1):
        every = [text + token for text in live for token in "ab."]
        every = [text for text in every if of_text(text, first) > -math.inf]
        every.sort(key=lambda text: -of_text(text, first))
        ended = [x for x in every[:K] if x.endswith(".") or step == length]
        live = [x for x in every if not x.endswith(".")][:K] if step < length else []
        fate = dict.fromkeys(live, "grows on") | dict.fromkeys(ended, "has ended")
        found.append([(of_text(x, first), fate.get(x, "dropped")) for x in every])
    return found


def agrees(page: Page, K: int, first: float, length: int, alpha: str) -> None:
    put(page, K, first, length, alpha)
    model = Table(first)
    given = torch.tensor([[3]])
    options = {"num_beams": K, "max_len": length, "eos_id": 2}
    best = beam_search(model, given, **options, length_penalty=float(alpha))
    result = page.locator("live-beam .beam-result").inner_text()
    said = re.findall(r"([ab]+\.?) \((−?[\d.]+)\)", result)
    scores = [x for x in best.scores[0].tolist() if x > -math.inf]
    assert [live.number(x) for _, x in said] == pytest.approx(scores, abs=5.1e-4)
    for (text, _), ids, score in zip(said, best.ids[0].tolist(), scores, strict=False):
        theirs = "".join(TOKENS[i] for i in ids)
        theirs = theirs[: theirs.index(".") + 1] if "." in theirs else theirs
        if min(abs(score - x) for x in scores if x != score or len(scores) < 2) > 1e-4:
            assert text == theirs or scores.count(score) > 1

    head, *rows = live.table(page, "The candidates of each step")
    assert head[1:] == ["step", "log-probability", "probability", "what becomes of it"]
    steps = int(rows[-1][1])
    assert steps == model.calls
    for step, expected in enumerate(expected_steps(K, first, length, steps), 1):
        its = [row for row in rows if row[1] == str(step)]
        for row in its:
            total = of_text(row[0], first)
            assert live.number(row[2]) == pytest.approx(total, abs=5.1e-4)
            assert live.number(row[3]) == pytest.approx(math.exp(total), abs=5.1e-4)
        # Of equal sums, any may be kept.
        ours = sorted((round(of_text(row[0], first), 6), row[4]) for row in its)
        assert ours == sorted((round(x, 6), fate) for x, fate in expected)
    drawn(page, rows)


def drawn(page: Page, rows: list[list[str]]) -> None:
    """Compare the tree with the table: each text, its number, its fate, its parent."""
    tree = page.locator("live-beam svg.live-chart")
    for fate, told in FATES.items():
        texts = tree.locator(f".node.{fate}").all_text_contents()
        its = [row for row in rows if row[4] == told]
        if fate != "dropped":
            parts = [text.partition("−") for text in texts]
            assert [text for text, _, _ in parts] == [row[0] for row in its]
            sums = [live.number(row[2]) for row in its]
            assert [-live.number(x) for _, _, x in parts] == pytest.approx(
                sums, abs=0.0056
            )
        assert len(texts) == tree.locator(f".edge.{fate}").count() == len(its)
    ends = "all => all.map(p => p.getAttribute('d').match(/[\\d.]+/g).map(Number))"
    corners = {}
    for node in tree.locator(".node.grows, .node.ended").all():
        box = node.locator("rect")
        x, y, w = (float(box.get_attribute(k) or "") for k in ("x", "y", "width"))
        corners[node.locator("text").first.text_content()] = (x, y + 19, x + w)
    for x0, y0, *_, x1, y1 in tree.locator(".edge:not(.dropped)").evaluate_all(ends):
        (text,) = [t for t, (x, y, _) in corners.items() if (x, y) == (x1, y1)]
        if len(text) > 1:
            assert corners[text[:-1]][1:] == pytest.approx((y0, x0))


SETTINGS = [
    (2, 0.6, 4, "0"),
    (1, 0.6, 4, "0"),
    (1, 0.35, 3, "0"),
    (3, 0.6, 5, "0.6"),
    (
        3,
        0.85,
        4,
        "0",
    ),  # b. is the fourth: no beam, though better than the third at last
    (4, 0.8, 5, "1"),
    (4, 0.25, 2, "0"),
    (2, 0.95, 5, "1"),
    (3, 0.95, 5, "0.6"),
]


@pytest.mark.nightly
@live.IN_BOTH
def test_the_tree_is_the_packages_search(page, request):
    some = SETTINGS[:2] if "firefox" in request.node.name else SETTINGS
    for setting in some:
        agrees(page, *setting)


def test_it_grows_step_by_step_and_plays(live_page):
    page = live.ready(live_page(live.figure(PIECE), fresh=True))
    page.get_by_role("button", name="Back").click()
    assert len(live.table(page, "The candidates of each step")) == 1 + 2
    assert page.locator("live-beam .beam-result").inner_text() == ""
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    assert page.locator("live-beam .live-sentence").first.inner_text() == (
        "Step 2. On with: aa, ab · Ended: b., a. · Dropped: ba, bb"
    )


def check(page: Page) -> None:
    for setting in (SETTINGS[-2], SETTINGS[-1], SETTINGS[3]):
        agrees(page, *setting)


test_a_planted_fault_is_seen = live.planted(
    "beam",
    check,
    ("pieces/beam/table.js", "[0.3, 0.3, 0.4, 0]", "[0.3, 0.4, 0.3, 0]"),
    ("engine/beam.js", "((5 + length) / 6)", "((6 + length) / 6)"),
    ("engine/beam.js", "=> b.score - a.score", "=> b.sum - a.score"),
    ("engine/beam.js", "<= worst.score", "> worst.score"),
    ("pieces/beam.js", "place < K &&", "place <= K &&"),
    ("pieces/beam.js", "Math.exp(beam.sum)", "Math.exp(beam.score)"),
    ("pieces/beam/tree.js", "from[beam.parent]", "from[0]"),
    ("pieces/beam/tree.js", "fixed(beam.sum)", "fixed(beam.score)"),
)
