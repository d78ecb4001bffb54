"""What holds for every piece: no reader is shut out, by keyboard, eye or ear."""

import pytest
from playwright.sync_api import Page, expect

import live_driving as live
import test_live_beam as beam
import test_live_config as config
import test_live_decoding as decoding
import test_live_masks as masks
import test_live_residual as residual

# What Tab reaches, in this order, before the numbers as a table; one of it, with a key
# that changes something; how what is told then begins.
KEYS = {
    "attention": (
        "key: cat | key: sat | key: because | query: it | temperature"
        " | divide by √d_k = √4 | Start again",
        ("key: cat", "Shift+ArrowLeft", "Weights: cat 55 %"),
    ),
    "beam": (
        "beam width K | P(a) at the start | tokens at most | 0 | Back | Play",
        ("beam width K", "ArrowLeft", "Step 2. On with: aa · Ended: a."),
    ),
    "break-head": (
        "22.11.2026 | July 20th, 1969 | 25 December 2025 | Your own date",
        ("July 20th, 1969", "Enter", "Now bet on one of the 24 heads."),
    ),
    "cache": (
        "Back | Next token | Play | KV cache | GPT-2 | The work of each step",
        ("Next token", "Enter", "Step 3: “mat” is new."),
    ),
    "cache-bytes": (
        "model | bfloat16 | layers N | texts at once B | key/value heads G | tokens L"
        " | width of a head",
        ("layers N", "ArrowLeft", "2k and v · 31N · 1B · 8G · 32,768L"),
    ),
    "codes": (
        "bits of a code, b | largest weight | 4 | What is kept, and what is read"
        " | The eight weights",
        ("bits of a code, b", "ArrowLeft", "3 bits, a scale for 4: 7.0 bits a weight"),
    ),
    "cards": (
        "Attention | Show the answer",
        ("Show the answer", "Enter", "The answer is unfolded."),
    ),
    "config": (
        "model | config.json | llama | The parameters | embedding | queries"
        " | keys and values | output of attention | gated network | norms of a block"
        " | last norm | output | tokens L | bfloat16 | The bytes of the cache",
        ("tokens L", "ArrowLeft", "A text of 4,096 tokens keeps 536.9 MB"),
    ),
    "decoding": (
        "the scores | temperature | top-k | top-p | min-p | Draw 100 tokens"
        " | Forget them",
        ("top-k", "ArrowLeft", "7 of 8 tokens can be drawn, A"),
    ),
    "distance": (
        "T5 | both directions | distance | buckets N | furthest M",
        (
            "distance",
            "ArrowLeft",
            "Distance 19: bucket 17 of 32. It shares it with all",
        ),
    ),
    "experts": (
        "common part | steps of the bias | 2",
        ("steps of the bias", "PageUp", "After 10 steps 1 of 8 experts is unused"),
    ),
    "heads": (
        "2 heads | 4 | heads, H | transpose when splitting"
        " | transpose back when merging",
        ("transpose when splitting", "Space", "head 1 belong to tokens 0, 0, 1"),
    ),
    "masks": (
        "window of 3 | query 7, key 3, read in 2 layers",
        ("query 7, key 3, read in 2 layers", "Space", "Query 7, key 3: may attend."),
    ),
    "positions": (
        "position | Play | 8",
        ("position", "ArrowRight", "Position 3: 0.1411, −0.9900"),
    ),
    "products": (
        "position q | position p | Both 10 to the left | Both 10 to the right"
        " | Swap p and q",
        ("position q", "ArrowRight", "p 25, q 21, distance 4"),
    ),
    "residual": (
        "residual connection | none | PyTorch’s own | layers | Run again"
        " | What you tried",
        ("residual connection", "Space", "Only residual connections, 24 layers"),
    ),
    "rotary": (
        "position of the query | position of the key | Both 10 back | Both 10 on"
        " | 10,000 | ones | pairs | pairs",
        ("position of the query", "ArrowRight", "Distance 2: the score / 64 is 0.8845"),
    ),
    "scaling": (
        "weak | float32 | GPUs n | parameters P | tokens a GPU | network"
        " | tokens a parameter | speed F",
        ("GPUs n", "ArrowLeft", "32 GPUs: efficiency 19 %"),
    ),
    "speculation": (
        "model, token 1 | model, token 2 | model, token 3 | draft, token 1"
        " | draft, token 2 | draft, token 3 | replace from (p − q)₊ | tokens ahead, K"
        " | a draft’s step, c",
        ("replace from (p − q)₊", "Space", "Of the draft’s proposals 70 % are kept."),
    ),
    "state": (
        "angle of the key | value, first | value, second | corrected, β | kept, α"
        " | Write | Take back | Start again | What the states answer"
        " | Each state is asked with the key of each token",
        ("Write", "Enter", "Token 3 wrote (7, 8) under the key (1.00, 0.00). Asked"),
    ),
    "tiles": (
        "Back | Next tile | 2 | shrink the earlier sums | score of key 1"
        " | score of key 2 | score of key 3 | score of key 4",
        (
            "Next tile",
            "Enter",
            "Tile 2: m = 3, ℓ = 1.5530, o = 47.0643. The earlier sums",
        ),
    ),
    "window": (
        "window W | layers N | global layers | first tokens kept",
        ("window W", "ArrowRight", "The last token depends on 17 of 30 tokens. N (W"),
    ),
    "width": (
        "width of queries and keys, d_k",
        ("width of queries and keys, d_k", "ArrowLeft", "At d_k 32, the largest"),
    ),
}


def drawn(page: Page) -> None:
    decoding.put(page, decoding.KING, decoding.SETTINGS[-2][1])
    page.get_by_role("button", name="Draw 100 tokens").click()


ALL_THERE = {  # what is done so that all that a piece can show is there
    "beam": lambda page: beam.put(page, 3, 0.6, 5, "0.6"),
    "config": lambda page: config.take(page, "gpt-oss-20b"),
    "decoding": drawn,
    "heads": lambda page: page.get_by_label("12").check(),
    "masks": lambda page: masks.cell(page, 0, 0).click(),
    "residual": lambda page: residual.choose(page, True, "none"),
}


@pytest.mark.by_day(5)
@pytest.mark.parametrize("piece", KEYS)
def test_the_keyboard_does_everything_and_changes_are_told(live_page, piece):
    names, (control, key, told) = KEYS[piece]
    page = live.ready(live_page(live.figure(piece)))
    reached = " | ".join(live.keys_reach(page))
    assert reached.removesuffix(" | Numbers as a table") == names
    live.keys_reach(page, until=control)
    page.keyboard.press(key)
    expect(page.locator("p.live-said")).to_contain_text(told)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("piece", KEYS)
def test_nothing_is_wrong_for_axe_or_on_a_phone(live_page, piece):
    live.audit(live_page, piece, ALL_THERE.get(piece, live.still))
