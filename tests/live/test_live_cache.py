"""The pieces on the KV cache count what the package computes and keeps."""

import functools
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Page, expect
from torch.utils.flop_counter import FlopCounterMode

from engine.project import Project
from live_driving import audit, figure, keys_reach, number, ready, shown, slide, table
from tformer import KeyValueCache
from tformer.models.families import custom, gpt2
from tformer.pretrained import load_pretrained

LIVE = Project.find(Path(__file__)).docs / "live"
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


@functools.cache
def counted(name: str, cached: bool) -> tuple[tuple[int, int, int], ...]:
    """Run a GPT over the words; return tokens, multiplications, bytes of each step.

    On the meta device, whose tensors have no numbers: torch counts the operations of
    every matrix product and of every attention, two to a multiplication.
    """
    N, H, G, Dh = SIZES[name]
    sizes = {"num_layers": N, "num_heads": H, "kv_heads": G, "d_model": H * Dh}
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
        steps.append((new, counter.get_total_flops() // 2, kept))
    return tuple(steps)


def follows(page: Page, cached: bool, name: str) -> None:
    """Go through the steps, and compare the whole table with the package."""
    page.get_by_label("KV cache").set_checked(cached)
    page.get_by_label(name, exact=True).check()
    while (back := page.get_by_role("button", name="Back")).is_enabled():
        back.click()
    steps, others = counted(name, cached), counted(name, not cached)
    for i in range(4):
        if i:
            page.get_by_role("button", name="Next token").click()
        head, *rows, total, other = table(page, WORK)
        assert head == ["step", "tokens", "multiplications", "bytes kept"]
        for j, row in enumerate(rows):
            written = [str(j + 1), *(f"{x:,}" for x in steps[j])]
            assert row == (written if j <= i else [str(j + 1), "–", "–", "–"])
        for cells, their in ((total, steps), (other, others)):
            done = their[: i + 1]
            assert number(cells[1]) == sum(step[0] for step in done)
            assert number(cells[2]) == sum(step[1] for step in done)
        assert other[0] == ("without cache" if cached else "with cache")
        drawn(page, 4 + i, steps[i][0], i)
    assert page.get_by_role("button", name="Next token").is_disabled()


def drawn(page: Page, length: int, new: int, step: int) -> None:
    """Compare the picture and the sentence with what a step is."""
    picture = page.locator("live-cache svg.live-chart")
    assert picture.locator("text.strong").all_text_contents() == WORDS[:length]
    assert picture.locator("circle.query").count() == new
    states = {"new": new, "kept": length - new, "empty": 7 - length}
    for state, count in states.items():
        assert picture.locator(f".kv.{state}").count() == 2 * count
    looks = sum(range(length - new + 1, length + 1))  # each query at all up to itself
    assert picture.locator("path.look").count() == looks
    said = page.locator("live-cache .live-sentence").inner_text()
    assert said.startswith(f"Step {step + 1}")
    assert step == 0 or f"“{WORDS[length - 1]}” is new" in said
    if "Kept:" in said:
        factors, product = re.search(r"Kept: (.*) = ([\d,]+) bytes", said).groups()
        assert torch.tensor([int(x) for x in factors.split(" · ")]).prod() == number(
            product
        )
        assert product == table(page, WORK)[step + 1][3]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("name", SIZES)
def test_each_step_reads_computes_and_keeps_what_the_package_does(
    live_page, name, cached
):
    follows(ready(live_page(figure("cache"))), cached, name)


def test_it_plays_to_the_end_and_can_be_stopped(live_page):
    page = ready(live_page(figure("cache")))
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").is_visible()
    page.clock.run_for(1500)
    assert page.locator("live-cache .live-sentence").inner_text().startswith("Step 4")
    assert page.get_by_role("button", name="Play", exact=True).is_visible()
    page.get_by_role("button", name="Play").click()
    assert page.locator("live-cache .live-sentence").inner_text().startswith("Step 1")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    assert page.locator("live-cache .live-sentence").inner_text().startswith("Step 1")


def test_the_keyboard_does_everything_and_steps_are_told(live_page):
    page = ready(live_page(figure("cache")))
    names = keys_reach(page)
    for name in ("Back", "Next token", "Play", "KV cache", "GPT-2"):
        assert name in names
    page.get_by_role("button", name="Next token").focus()
    page.keyboard.press("Enter")
    said = page.locator("live-cache .live-sentence").inner_text()
    assert said.startswith("Step 3: “mat”")
    expect(page.locator("live-cache .live-said")).to_have_text(said)


@pytest.mark.parametrize("piece", ["cache", "cache-bytes"])
def test_nothing_is_wrong_for_axe_or_on_a_phone(live_page, piece):
    assert not audit(live_page, piece)


def bytes_shown(page: Page) -> int:
    """Return what the formula of the page comes to, once its factors agree with it."""
    text = page.locator(".cache-formula").inner_text().replace("\n", "")
    factors = re.findall(r"([\d,]+)(k and v|dₖ|[NBGLb])", text.partition("=")[0])
    assert [name for _, name in factors] == ["k and v", "N", "B", "G", "L", "dₖ", "b"]
    product = 1
    for factor, _ in factors:
        product *= int(number(factor))
    assert product == number(text.partition("=")[2].replace("bytes", ""))
    return product


def tensors(N: int, B: int, G: int, L: int, Dh: int, dtype: torch.dtype) -> int:
    cache = KeyValueCache(max_len=L)
    key = torch.empty(B, G, 1, Dh, dtype=dtype, device="meta")
    cache.append(key, key)
    return N * cache.nbytes


def agrees(page: Page, places: list[int], dtype: str) -> None:
    page.get_by_label(dtype, exact=True).check()
    sizes = []
    for (label, values), place in zip(SLIDERS.items(), places, strict=True):
        slide(page, label, place)
        assert shown(page, label) == f"{values[place]:,}"
        sizes.append(values[place])
    N, B, G, L, Dh = sizes
    expected = tensors(N, B, G, L, Dh, DTYPES[dtype])
    assert bytes_shown(page) == expected
    said = page.locator("live-cache-bytes .live-sentence").inner_text()
    amounts = re.findall(r"([\d.]+) (bytes|kB|MB|GB|TB)", said)
    units = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    taken, more, _ = (float(x) * units[unit] for x, unit in amounts)
    assert taken == pytest.approx(expected, rel=0.006)
    assert more == pytest.approx(tensors(N, 1, G, 1, Dh, DTYPES[dtype]), rel=0.006)
    fitting = int(80e9 // tensors(N, 1, G, L, Dh, DTYPES[dtype]))
    written = {0: "no texts", 1: "one text"}.get(fitting, f"{fitting:,} texts")
    assert f"would hold {written} of" in said
    _, *rows = table(page, "The bytes of the cache")
    for length, cell, _ in rows:
        assert number(cell) == tensors(N, B, G, int(number(length)), Dh, DTYPES[dtype])


@pytest.mark.parametrize(
    ("places", "dtype"),
    [
        ([31, 0, 7, 12, 3], "bfloat16"),
        ([11, 3, 11, 7, 2], "float32"),
        ([0, 8, 0, 0, 0], "8 bits"),
        ([63, 8, 31, 14, 4], "float32"),
        ([4, 1, 2, 3, 1], "8 bits"),
    ],
)
def test_the_bytes_are_those_of_real_tensors(live_page, places, dtype):
    agrees(ready(live_page(figure("cache-bytes"))), places, dtype)


@pytest.mark.parametrize("live_page", ["chromium", "firefox"], indirect=True)
def test_the_models_of_the_book_have_their_sizes(live_page):
    page = ready(live_page(figure("cache-bytes")))
    model = page.get_by_label("model")
    dates, _, _ = load_pretrained("dates")
    c = dates.config
    cache = dates.new_cache(11)
    source = torch.ones(1, 5, dtype=torch.int64)
    with torch.no_grad():
        memory = dates.encode(source)
        dates.decode(source, memory, cache=cache)
    target = sum(block.sequence.nbytes for block in cache.blocks)
    assert c.num_decoder_layers == 2
    model.select_option("the decoder of dates")
    assert bytes_shown(page) == target
    for name in ("GPT-2", "GPT-2 XL"):
        model.select_option(name)
        size = name.replace("GPT-2", "gpt2").replace(" XL", "-xl")
        c = {**gpt2.DEFAULTS, **gpt2.SIZES[size]}
        N, H, length = c["n_layer"], c["n_head"], c["n_positions"]
        expected = tensors(N, 1, H, length, c["n_embd"] // H, torch.float32)
        assert bytes_shown(page) == expected
    chapter = (LIVE.parent / "chapters/decoding.md").read_text("utf-8")
    for G, gigabytes in re.findall(
        r"^G = +(\d+), 32,768 tokens: ([\d.]+) GB", chapter, re.M
    ):
        model.select_option(f"32 layers, G = {G}")
        assert f"{bytes_shown(page) / 1e9:.2f}" == gigabytes
    slide(page, "layers N", 0)
    assert model.evaluate("s => s.selectedOptions[0].text") == "my own"


@pytest.mark.parametrize(
    ("file", "right", "fault"),
    [
        ("formulas/cache.js", "return 2 * layers", "return layers"),
        ("formulas/cache.js", "2 * width * kvHeads", "width * kvHeads"),
        (
            "formulas/cache.js",
            "2 * tokens * length * width",
            "2 * tokens * tokens * width",
        ),
        ("formulas/cache.js", "cached && i > 0 ? 1 : now", "cached ? 1 : now"),
        ("pieces/cache/drawing.js", "k <= q", "k < q"),
        ("pieces/cache/drawing.js", '? "kept" : "new"', '? "new" : "kept"'),
        (
            "pieces/cache.js",
            "each.tokens, work(each), kept]",
            "each.length, work(each), kept]",
        ),
    ],
)
def test_a_planted_fault_is_seen(live_page, live_site, file, right, fault):
    source = (LIVE / file).read_text("utf-8")
    assert right in source
    live_site.changed[f"/live/{file}"] = source.replace(right, fault)
    page = ready(live_page(figure("cache")))
    with pytest.raises(AssertionError):
        follows(page, True, "GPT-2")


@pytest.mark.parametrize(
    ("file", "right", "fault"),
    [
        ("formulas/cache.js", "length * headDim * bytes", "length * headDim"),
        ("pieces/cache-bytes.js", '"G", "L", "dₖ"', '"L", "G", "dₖ"'),
        ("pieces/cache-bytes.js", "range(1, 64)", "range(0, 63)"),
        ("formulas/cache.js", '"MB", "GB"', '"GB", "MB"'),
    ],
)
def test_a_planted_fault_in_the_bytes_is_seen(live_page, live_site, file, right, fault):
    source = (LIVE / file).read_text("utf-8")
    assert right in source
    live_site.changed[f"/live/{file}"] = source.replace(right, fault)
    page = ready(live_page(figure("cache-bytes")))
    with pytest.raises(AssertionError):
        agrees(page, [11, 3, 11, 7, 2], "bfloat16")
