"""The pieces on the KV cache count what the package computes and keeps."""

import functools
import math
import re

import pytest
import torch
from playwright.sync_api import Page
from torch.utils.flop_counter import FlopCounterMode

import live_driving as live
from live_serving import DOCS
from tformer import KeyValueCache
from tformer.models.families import custom, gpt2
from tformer.pretrained import load_pretrained

PIECE, BYTES = "cache", live.figure("cache-bytes")
WORDS = ["the", "cat", "sat", "on", "the", "mat", "."]
WORK = "What each step reads"
SIZES = {"GPT-2": (12, 12, 12, 64), "GPT-2 XL": (48, 25, 25, 64)}  # N, H, G, Dh
SLIDERS = {
    "layers N": list(range(1, 65)),
    "texts at once B": [2**n for n in range(9)],
    "key/value heads G": list(range(1, 33)),
    "tokens L": [11, *(2**n for n in range(4, 18))],
    "width of a head": [16, 32, 64, 128, 256],
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
DTYPES["8 bits"] = torch.float8_e4m3fn
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@functools.cache
def counted(name: str, cached: bool) -> tuple[tuple[int, int, int], ...]:
    """Run a GPT over the words; return tokens, multiplications, bytes of each step.

    On the meta device, whose tensors have no numbers: torch counts the operations of
    every matrix product and of every attention, two to a multiplication. All layers
    are alike: one is run.
    """
    N, H, G, Dh = SIZES[name]
    sizes = {"num_layers": 1, "num_heads": H, "kv_heads": G, "d_model": H * Dh}
    with torch.device("meta"):
        model = custom.build({"vocab_size": 9, "max_len": 7, **sizes}).eval()
    cache = model.new_cache(7)
    steps = []
    for length in range(4, 8):
        new = length if not cached or length == 4 else 1
        ids = torch.zeros(1, new, dtype=torch.int64, device="meta")
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model.states(ids, cache=cache if cached else None)
        kept = 2 * N * G * Dh * length * 4 if cached else 0
        assert cache.length == (length if cached else 0)
        steps.append((new, N * counter.get_total_flops() // 2, kept))
    return tuple(steps)


def follows(page: Page, cached: bool, name: str) -> None:
    """Go through the steps, and compare the whole table with the package."""
    live.choose(page, "KV cache", cached)
    live.choose(page, name)
    while page.get_by_role("button", name="Back").is_enabled():
        live.press(page, "Back")
    steps, others = counted(name, cached), counted(name, not cached)
    for i in range(4):
        if i:
            live.press(page, "Next token")
        head, *rows, total, other = live.table(page, WORK)
        assert head == ["step", "tokens", "multiplications", "bytes kept"]
        for j, row in enumerate(rows):
            written = [str(j + 1), *(f"{x:,}" for x in steps[j])]
            assert row == (written if j <= i else [str(j + 1), "–", "–", "–"])
        for cells, their in ((total, steps), (other, others)):
            for k in (1, 2):
                assert live.number(cells[k]) == sum(
                    step[k - 1] for step in their[: i + 1]
                )
        assert other[0] == ("without cache" if cached else "with cache")
        drawn(page, 4 + i, steps[i][0], i)
    assert page.get_by_role("button", name="Next token").is_disabled()


def drawn(page: Page, length: int, new: int, step: int) -> None:
    """Compare the picture and the sentence with what a step is."""
    picture = page.locator("live-cache svg.live-chart")
    assert picture.locator("text.strong").all_text_contents() == WORDS[:length]
    assert picture.locator("circle.query").count() == new
    for state, count in (("new", new), ("kept", length - new), ("empty", 7 - length)):
        assert picture.locator(f".kv.{state}").count() == 2 * count
    looks = sum(range(length - new + 1, length + 1))  # each query at all up to itself
    assert picture.locator("path.look").count() == looks
    said = page.locator("live-cache .live-sentence").inner_text()
    assert said.startswith(f"Step {step + 1}")
    assert step == 0 or f"“{WORDS[length - 1]}” is new" in said
    if "Kept:" in said:
        factors, product = re.search(r"Kept: (.*) = ([\d,]+) bytes", said).groups()
        assert math.prod(map(int, factors.split(" · "))) == live.number(product)
        assert product == live.table(page, WORK)[step + 1][3]


@live.IN_BOTH
def test_each_step_is_the_packages(page):
    for name in SIZES:
        for cached in (True, False):
            follows(page, cached, name)


def test_it_plays_to_the_end_and_can_be_stopped(live_page):
    page = live.ready(live_page(live.figure(PIECE), fresh=True))
    said = page.locator("live-cache .live-sentence")
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").is_visible()
    page.clock.run_for(1500)
    assert said.inner_text().startswith("Step 4")
    assert page.get_by_role("button", name="Play", exact=True).is_visible()
    page.get_by_role("button", name="Play").click()
    assert said.inner_text().startswith("Step 1")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert said.inner_text().startswith("Step 1")


def bytes_shown(page: Page) -> int:
    """Return what the formula of the page comes to, once its factors agree with it."""
    text = page.locator(".cache-formula").inner_text().replace("\n", "")
    factors = re.findall(r"([\d,]+)(k and v|dₖ|[NBGLb])", text.partition("=")[0])
    assert [name for _, name in factors] == ["k and v", "N", "B", "G", "L", "dₖ", "b"]
    product = math.prod(int(live.number(factor)) for factor, _ in factors)
    assert product == live.number(text.partition("=")[2].replace("bytes", ""))
    return product


def tensors(N: int, B: int, G: int, L: int, Dh: int, dtype: torch.dtype) -> int:
    cache = KeyValueCache(max_len=L)
    key = torch.empty(B, G, 1, Dh, dtype=dtype, device="meta")
    cache.append(key, key)
    return N * cache.nbytes


def agrees(page: Page, places: list[int], name: str) -> None:
    live.choose(page, name)
    sizes, dtype = [], DTYPES[name]
    for (label, values), place in zip(SLIDERS.items(), places, strict=True):
        live.slide(page, label, place)
        assert live.shown(page, label) == f"{values[place]:,}"
        sizes.append(values[place])
    N, B, G, L, Dh = sizes
    expected = tensors(N, B, G, L, Dh, dtype)
    assert bytes_shown(page) == expected
    said = page.locator("live-cache-bytes .live-sentence").inner_text()
    amounts = re.findall(r"([\d.]+) (bytes|kB|MB|GB|TB)", said)
    taken, more, _ = (float(x) * UNITS[unit] for x, unit in amounts)
    assert taken == pytest.approx(expected, rel=0.006)
    assert more == pytest.approx(tensors(N, 1, G, 1, Dh, dtype), rel=0.006)
    fitting = int(80e9 // tensors(N, 1, G, L, Dh, dtype))
    written = {0: "no texts", 1: "one text"}.get(fitting, f"{fitting:,} texts")
    assert f"would hold {written} of" in said
    for length, cell, _ in live.table(page, "The bytes of the cache")[1:]:
        assert live.number(cell) == tensors(
            N, B, G, int(live.number(length)), Dh, dtype
        )


def test_the_bytes_are_those_of_real_tensors(live_page):
    page = live.ready(live_page(BYTES))
    agrees(page, [31, 0, 7, 12, 3], "bfloat16")
    agrees(page, [11, 3, 11, 7, 2], "float32")
    agrees(page, [0, 8, 0, 0, 0], "8 bits")
    agrees(page, [63, 8, 31, 14, 4], "float32")
    agrees(page, [4, 1, 2, 3, 1], "8 bits")


def test_the_models_of_the_book_have_their_sizes(live_page):
    page = live.ready(live_page(BYTES))
    model = page.get_by_label("model")
    dates, _, _ = load_pretrained("dates")
    cache = dates.new_cache(11)
    source = torch.ones(1, 5, dtype=torch.int64)
    with torch.no_grad():
        dates.decode(source, dates.encode(source), cache=cache)
    assert dates.config.num_decoder_layers == 2
    model.select_option("the decoder of dates")
    assert bytes_shown(page) == sum(block.sequence.nbytes for block in cache.blocks)
    for name, size in (("GPT-2", "gpt2"), ("GPT-2 XL", "gpt2-xl")):
        model.select_option(name)
        c = {**gpt2.DEFAULTS, **gpt2.SIZES[size]}
        N, H, length = c["n_layer"], c["n_head"], c["n_positions"]
        expected = tensors(N, 1, H, length, c["n_embd"] // H, torch.float32)
        assert bytes_shown(page) == expected
    chapter = (DOCS / "chapters/kv-cache.md").read_text("utf-8")
    printed = re.findall(r"^G = +(\d+), 32,768 tokens: ([\d.]+) GB", chapter, re.M)
    for G, gigabytes in printed:
        model.select_option(f"32 layers, G = {G}")
        assert f"{bytes_shown(page) / 1e9:.2f}" == gigabytes
    live.slide(page, "layers N", 0)
    assert model.evaluate("s => s.selectedOptions[0].text") == "my own"


FORMULAS, DRAWING = "formulas/cache.js", "pieces/cache/drawing.js"
test_a_planted_fault_is_seen = live.planted(
    "cache",
    lambda page: follows(page, True, "GPT-2"),
    (FORMULAS, "return 2 * layers", "return layers"),
    (FORMULAS, "2 * width * kvHeads", "width * kvHeads"),
    (FORMULAS, "2 * tokens * length * width", "2 * tokens * tokens * width"),
    (FORMULAS, "cached && i > 0 ? 1 : now", "cached ? 1 : now"),
    (DRAWING, "k <= q", "k < q"),
    (DRAWING, '? "kept" : "new"', '? "new" : "kept"'),
    ("pieces/cache.js", "each.tokens, work", "each.length, work"),
)
test_a_planted_fault_in_the_bytes_is_seen = live.planted(
    "cache-bytes",
    lambda page: agrees(page, [11, 3, 11, 7, 2], "bfloat16"),
    (FORMULAS, "length * headDim * bytes", "length * headDim"),
    ("pieces/cache-bytes.js", '"G", "L", "dₖ"', '"L", "G", "dₖ"'),
    ("pieces/cache-bytes.js", "range(1, 64)", "range(0, 63)"),
    (FORMULAS, '"MB", "GB"', '"GB", "MB"'),
)
