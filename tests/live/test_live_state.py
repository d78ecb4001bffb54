"""Both states of the piece are those that the package writes, token by token."""

import re
from math import cos, log, radians, sin

import torch
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS
from tformer.nn.delta_rule import delta_rule_recurrent
from tformer.nn.linear_attention import linear_attention_recurrent

PIECE = "state"
ANSWERS = "Each state is asked with the key of each token"
BEGINNING = [(0, (3, 4), 1.0, 1.0), (90, (5, 6), 1.0, 1.0)]
Token = tuple[int, tuple[int, int], float, float]  # angle, value, α, β


def write(page: Page, token: Token) -> None:
    angle, value, alpha, beta = token
    live.slide(page, "angle of the key", angle // 15)
    live.slide(page, "value, first", value[0])
    live.slide(page, "value, second", value[1])
    live.slide(page, "kept, α", round(20 * alpha))
    live.slide(page, "corrected, β", round(20 * beta))
    assert live.shown(page, "angle of the key") == f"{angle}°"
    assert live.same(live.shown(page, "kept, α"), alpha)
    assert live.same(live.shown(page, "corrected, β"), beta)
    live.press(page, "Write")


def vectors(text: str) -> list[list[str]]:
    return [found.split(", ") for found in re.findall(r"\((.*?)\)", text)]


def check(page: Page, tokens: list[Token]) -> None:
    """Compare both states, and what they answer to each key, with the package."""
    angles = [radians(token[0]) for token in tokens]
    key = torch.tensor([[cos(a), sin(a)] for a in angles], dtype=torch.float64)
    value = torch.tensor([token[1] for token in tokens], dtype=torch.float64)
    decay = torch.tensor([log(token[2]) for token in tokens], dtype=torch.float64)
    beta = torch.tensor([token[3] for token in tokens], dtype=torch.float64)
    k, v, decay, beta = (x[None, None] for x in (key, value, decay, beta))
    _, added = linear_attention_recurrent(k, k, v, log_decay=decay)
    _, corrected = delta_rule_recurrent(k, k, v, beta, log_decay=decay)
    states = added[0, 0], corrected[0, 0]
    for table, state in zip(page.locator(".state-matrix").all(), states, strict=True):
        for text, number in zip(
            table.locator("td").all_inner_texts(), state.flatten(), strict=True
        ):
            assert live.same(text, number.item())
    asked = [(key @ state).tolist() for state in states]
    rows = live.table(page, ANSWERS)[1:]
    for i, (token, row) in enumerate(zip(tokens, rows, strict=True)):
        old = any(later[0] == token[0] for later in tokens[i + 1 :])
        assert row[:2] == [f"{i + 1}, old" if old else f"{i + 1}", f"{token[0]}°"]
        for text, numbers in zip(
            row[2:], (token[1], asked[0][i], asked[1][i]), strict=True
        ):
            assert all(map(live.same, *vectors(text), numbers))
    said = page.locator("live-state .live-sentence").inner_text()
    assert said.startswith(f"Token {len(tokens)} wrote ")
    wanted = (tokens[-1][1], key[-1].tolist(), asked[0][-1], asked[1][-1])
    for found, numbers in zip(vectors(said), wanted, strict=True):
        assert all(map(live.same, found, numbers))


@live.IN_BOTH
def test_the_third_token_of_the_chapter_replaces_or_is_added(page):
    text = (DOCS / "chapters/linear-attention.md").read_text("utf-8")
    for state in (
        "[[3.0, 4.0], [5.0, 6.0]]\n[[10.0, 12.0], [5.0, 6.0]]",
        "error [4.0, 4.0]   state [[7.0, 8.0], [5.0, 6.0]]",
    ):
        assert state in text
    check(page, BEGINNING)
    live.press(page, "Write")
    check(page, [*BEGINNING, (0, (7, 8), 1.0, 1.0)])
    cells = page.locator(".state-matrix td").all_inner_texts()
    assert [live.number(x) for x in cells] == [10, 12, 5, 6, 7, 8, 5, 6]


MORE: list[Token] = [
    (45, (-9, 9), 1.0, 1.0),
    (45, (2, 0), 0.5, 1.0),
    (180, (1, -3), 0.95, 0.25),
    (0, (7, 8), 0.05, 0.0),
]


def all_of_more(page: Page) -> None:
    for i, token in enumerate(MORE):
        write(page, token)
        check(page, [*BEGINNING, *MORE[: i + 1]])


def test_keys_between_others_decay_and_half_a_correction(page):
    all_of_more(page)
    live.press(page, "Take back")
    check(page, [*BEGINNING, *MORE[:-1]])
    live.press(page, "Start again")
    check(page, BEGINNING)


def test_it_is_full_after_eight_and_empty_after_none(page):
    for _ in range(6):
        live.press(page, "Write")
    assert page.get_by_role("button", name="Write").is_disabled()
    assert len(live.table(page, ANSWERS)) == 1 + 8
    for _ in range(8):
        live.press(page, "Take back")
    assert page.get_by_role("button", name="Take back").is_disabled()
    said = page.locator("live-state .live-sentence").inner_text()
    assert said == "Nothing is written: both states are 0."
    assert set(page.locator(".state-matrix td").all_inner_texts()) == {"0.00"}


FORMULA = "formulas/state.js"
test_a_planted_fault_is_seen = live.planted(
    "state",
    all_of_more,
    (FORMULA, "alpha * s + key[i] * value[j]", "s + alpha * key[i] * value[j]"),
    (FORMULA, "answer(kept, key)", "answer(state, key)"),
    (FORMULA, "s + beta * key[i]", "s + key[i]"),
    (FORMULA, "q * state[i][j]", "q * state[j][i]"),
    ("pieces/state.js", "at(this.beta) / 20)", "at(this.alpha) / 20)"),
    ("pieces/state.js", "later.angle === angle", "later.angle > angle"),
)
