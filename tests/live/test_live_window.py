"""How far the piece's layers reach is what gradients of the package's model say."""

import re
from functools import cache

import pytest
import torch
from playwright.sync_api import Page

import live_driving as live
from live_serving import DOCS
from tformer import MultiHeadAttention, causal_mask
from tformer.models import build_model
from tformer.nn import cache_of

PIECE = "window"
TOKENS = 30
SIZES = {"vocab_size": 11, "d_model": 16, "num_heads": 2, "max_len": 40}
TABLE = "What the last token depends on"
CELLS = """() => {
  const rows = new Map()
  for (const cell of document.querySelectorAll(".window-cell")) {
    const y = Number(cell.getAttribute("y"))
    rows.set(y, [...(rows.get(y) ?? []), cell.classList.contains("there")])
  }
  return [...rows.keys()].sort((a, b) => a - b).map((y) => rows.get(y))
}"""


@cache
def gradients(window: int, layers: int, every: int) -> list[bool]:
    """Ask a model of the package, as the chapter does, on what the last depends."""
    torch.manual_seed(0)
    config = SIZES | {"model_type": "tformer", "positions": "rotary"}
    config |= {"window": window, "num_layers": layers}
    if every:
        config |= {"global_every": every}
    model = build_model(config).double().eval()
    embedded = []
    model.embedding.register_forward_hook(lambda _, __, out: embedded.append(out))
    last = model(torch.arange(TOKENS)[None] % 11)[0, -1].square().sum()
    (gradient,) = torch.autograd.grad(last, embedded[0])
    return (gradient[0].abs().sum(-1) > 0).tolist()


def stages(windows: list[int | None], first: int) -> list[list[bool]]:
    """Multiply masks, from the last layer to the first."""
    kept = (torch.arange(TOKENS) < first) & causal_mask(TOKENS)
    row = torch.eye(TOKENS)[-1:] > 0
    rows = [row]
    for window in reversed(windows):
        mask = causal_mask(TOKENS, window=window) | kept
        row = row.int() @ mask.int() > 0
        rows.append(row)
    return torch.cat(rows).tolist()


@cache
def room(window: int | None) -> int:
    """Ask a cache of the package for how many keys it takes room."""
    attention = MultiHeadAttention(4, 1, window=window)
    cached = cache_of(attention, TOKENS)
    with torch.no_grad():
        attention(torch.zeros(1, 1, 4), is_causal=True, cache=cached)
    return cached.nbytes // (2 * 4 * 4)  # keys and values, 4 numbers, 4 bytes


def put(page: Page, window: int, layers: int, every: int, first: int) -> None:
    for name, value in (
        ("window W", window),
        ("layers N", layers),
        ("global layers", every),
        ("first tokens kept", first),
    ):
        live.slide(page, name, value)


def check(page: Page, window: int, layers: int, every: int, first: int) -> None:
    """Compare cells, sentence and table with masks, gradients and caches."""
    numbers = range(1, layers + 1)
    windows = [None if every and n % every == 0 else window for n in numbers]
    wanted = stages(windows, first)
    assert page.evaluate(CELLS) == wanted
    if not first:
        assert wanted[-1] == gradients(window, layers, every)
    said = page.locator("live-window .live-sentence").inner_text()
    count, bound, keys, all_keys = re.fullmatch(
        r"The last token depends on (\d+) of 30 tokens\."
        r"(?: N \(W − 1\) \+ 1 = (\d+)\.)? The caches? of .* room for (\d+) of (\d+)"
        r" keys(?:, and the first tokens besides)?\.",
        said,
    ).groups()
    assert int(count) == sum(wanted[-1])
    assert (bound is None) == bool(first or None in windows)
    if bound:
        assert int(bound) == layers * (window - 1) + 1
        assert int(count) == min(TOKENS, int(bound))
    assert int(keys) == sum(map(room, windows))
    assert int(all_keys) == layers * room(None)
    for row, of, stage, n in zip(
        live.table(page, TABLE)[1:],
        reversed(windows),
        wanted[1:],
        reversed(numbers),
        strict=True,
    ):
        assert row[:3] == [f"layer {n}", str(of or "global"), str(sum(stage))]
        places = []
        for part in row[3].split(", "):
            begin, _, end = part.partition("–")
            places += range(int(begin), int(end or begin) + 1)
        assert places == [i for i, there in enumerate(stage) if there]


@live.IN_BOTH
def test_it_starts_with_the_model_of_the_chapter(page):
    text = (DOCS / "chapters/long-context.md").read_text("utf-8")
    assert "layers 4: 13 tokens" in text
    check(page, 4, 4, 0, 0)
    put(page, 4, 4, 4, 0)
    assert "every 4th" in live.shown(page, "global layers")
    check(page, 4, 4, 4, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("every", [0, 1, 2, 3, 6])
def test_windows_layers_global_ones_and_first_tokens(page, every, first):
    for window, layers in ((1, 1), (2, 8), (5, 3), (16, 2), (30, 5)):
        put(page, window, layers, every, first)
        check(page, window, layers, every, first)


def all_of_it(page: Page) -> None:
    for settings in ((4, 4, 0, 0), (3, 4, 3, 0), (2, 3, 0, 2)):
        put(page, *settings)
        check(page, *settings)


FORMULA = "formulas/window.js"
test_a_planted_fault_is_seen = live.planted(
    "window",
    all_of_it,
    (FORMULA, "key > query - window", "key >= query - window"),
    (FORMULA, "key < first", "key <= first"),
    (FORMULA, "(i + 1) % globalEvery", "i % globalEvery"),
    (FORMULA, "windows.toReversed()", "windows"),
    (FORMULA, "2 * window", "window"),
    ("pieces/window.js", "(W - 1) + 1}", "W}"),
)
