"""The explorer in a reader's hands: addresses, the tour, keys, sound."""

import re

import pytest
import torch
from playwright.sync_api import Page, expect

from live_driving import audit, keys_reach, number, ready, slide
from live_explorer import (
    CROSS,
    TEXT,
    WITHOUT_MASK,
    case_of,
    check_picture,
    computed,
    follow,
    ids_written,
    marks,
    pick,
    row,
    settled,
    type_text,
    written_by,
)

PIECE = "model"
SHOWN = (".stage", ".bars", ".compare", ".head-view h2", ".head-words", ".path-view h2")
REACHED = (
    "A date, in any",
    "jeudi 3 mai 1979",
    "Take the tour",
    "Play",
    "speed",
    "Temperature",
    "one head off",
    "Scale",
    "Causal mask",
    "trained as in",
    "Cross-attention, layer 2, head 3",
    "Switch this head off",
    "Row of 5",
    "Embedding + position",
    "query: read a number",
)


def snapshot(page: Page) -> list[str]:
    """What is shown, in short."""
    shown = [page.locator(x).inner_text() for x in SHOWN]
    inputs = page.locator("live-model input").evaluate_all(
        "x => x.map(i => i.value + i.checked)"
    )
    stage = page.locator(".path-stage[aria-expanded=true]").get_attribute("data-stage")
    return [*shown, *inputs, str(stage)]


@pytest.mark.nightly
def test_an_address_holds_all_that_is_set(page):
    type_text(page, "August 4, 2024")
    slide(page, "Scale", 0.5)
    settled(page)
    text = "".join(row(page, "written")).rstrip("▮")
    said = page.locator("live-model > .live-said")
    assert said.get_attribute("role") == "status"
    expect(said).to_have_text(f"Now it writes {text}.")
    slide(page, "Temperature", 1.5)
    slide(page, "Top-k", 4)
    pick(page, "Masked self-attention, layer 1, head 2")
    page.get_by_role("button", name="Switch this head off").click()
    page.get_by_role("button", name="One token back").click()
    settled(page)
    follow(page, "written", 4)
    page.locator(".path-stage[data-stage=output]").click()
    settled(page)
    before = snapshot(page)
    page.wait_for_url(re.compile("stage=output"))
    assert "?" not in page.url  # what stands after # is never sent to a server
    page.reload()
    settled(ready(page))
    assert snapshot(page) == before
    page.evaluate("() => { location.hash = '#text=3+mai+1979&positions=0' }")
    page.locator(".stage-source button").nth(11).wait_for(state="detached")
    assert row(settled(page), "source") == marks("3 mai 1979")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "fragment",
    [
        "#text=%00%FF%&off=nobody,constructor&scale=NaN&positions=-1&tour=77",
        "#head=decoder.blocks.9.cross_attention:0&token=target:999&stage=__proto__"
        "&step=5000&model=../../etc&temperature=1e99&topK=0.5&seed=1;2&causal=yes",
        "#=&&&is-it-right",
    ],
)
def test_bad_values_in_an_address_count_for_nothing(page, fragment):
    page.goto(page.url.partition("#")[0] + fragment)
    page.reload()
    settled(ready(page))
    assert page.locator(".compare-verdict").inner_text() == "Nothing is changed."
    assert page.locator(".model-message").is_hidden()
    assert page.locator("aside.tour").is_hidden()
    if "text=" not in fragment:
        check_picture(page, TEXT)


@pytest.mark.nightly
def test_the_tour_tells_numbers_of_the_model_and_ends_in_a_question(page):
    page.get_by_role("button", name=re.compile("Take the tour")).click()
    settled(page)
    texts, rows = [], []
    for stop in range(1, 9):
        page.get_by_text(f"{stop} of 8", exact=True).wait_for()
        texts.append(page.locator(".tour-text").inner_text())
        rows.append(row(page, "written"))
        page.get_by_role("button", name="Next" if stop < 8 else "Done").click()
        settled(page)
    assert page.locator("aside.tour").is_hidden()
    off, lost, alone = rows[-3:]

    written = marks(written_by(TEXT))
    theirs = computed(case_of(TEXT, written))
    ids = ids_written(written)
    least = min(theirs["probabilities"][t, i].item() for t, i in enumerate(ids))
    assert f"read {len(TEXT) + 1} tokens" in texts[0]
    assert f"written {len(written)}" in texts[0]
    assert least > 0.9995
    assert "probability of > 99.9 % or more" in texts[0]
    weight = theirs[f"{CROSS}:weights"][2, 6].max().item()
    assert f"gives {100 * weight:.1f} % of its weight to the m of mai" in texts[1]
    masked = theirs["decoder.blocks.1.attention:weights"][0]
    assert masked.triu(1).sum() == 0
    assert "sum to 0," in texts[2]
    best = int(theirs[f"{CROSS}:weights"][2, 6].argmax())
    told = [number(x) for x in re.findall(r": (−?[\d.]+\d)", texts[3])]
    for step, value in zip(("scores", "scaled", "weights"), told, strict=True):
        assert abs(value - theirs[f"{CROSS}:{step}"][2, 6, best].item()) < 0.006
    name = "decoder.blocks.1.feed_forward"
    alive = int((theirs[f"{name}.hidden"][6] > 0).sum())
    before, after = (
        theirs[f"decoder.blocks.1.after_{part}"][6].norm().item()
        for part in ("cross_attention", "feed_forward")
    )
    assert f"of which {alive} are above 0" in texts[4]
    assert f"length {before:.1f} before and has {after:.1f} after" in texts[4]
    p = computed(case_of(TEXT, off, off=(f"{CROSS}:2",)))["probabilities"][
        6, ids[6]
    ].item()
    (told,) = re.findall(r"token \d+ (?:is|went from .* to) ([<> \d.]+) %", texts[5])
    assert abs(number(told.removeprefix("> ").removeprefix("< ")) / 100 - p) < 0.0011
    right = sum(a == b for a, b in zip(lost, written, strict=True))
    wrote = "".join(lost).rstrip("▮")
    assert f"writes {wrote}: {right} of {len(written)} tokens" in texts[6]
    answer = computed(case_of(TEXT, written, causal=False), WITHOUT_MASK)
    hits = int((answer["logits"].argmax(-1) == torch.tensor(ids)).sum())
    assert f"gets {hits} of {len(written)} tokens right" in texts[7]
    lone = "".join(alone).rstrip("▮") or "nothing but the end token"
    assert f"Alone it writes {lone}." in texts[7]
    assert "".join(alone) != "".join(written)
    assert texts[7].endswith("?")


@pytest.mark.nightly
def test_the_keyboard_alone_does_everything(page):
    names = keys_reach(page)
    for name in REACHED:
        assert any(x.startswith(name) for x in names), (name, names)
    title = page.locator(".probabilities .live-title")
    page.locator(".stage-written [tabindex='0']").focus()
    page.keyboard.press("Home")
    settled(page)
    assert title.inner_text().startswith("Token 1:")
    page.keyboard.press("ArrowRight")
    settled(page)
    assert title.inner_text().startswith("Token 2:")
    page.locator(".maps-head[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert page.locator(".head-view h2").inner_text().endswith("head 2")
    page.keyboard.press("Delete")
    settled(page)
    off = page.locator(".maps-head.off").get_attribute("aria-label")
    assert off.endswith("head 2, switched off")
    page.locator(".head-row[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    assert title.inner_text().startswith("Token 3:")
    strip = page.get_by_role("slider", name="query: read a number")
    strip.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    written = row(page, "written")
    theirs = computed(case_of(TEXT, written, off=(f"{CROSS}:1",)))[f"{CROSS}:query"][
        1, 2, 1
    ]
    told = re.fullmatch(r"number 2: (\S+)", strip.get_attribute("aria-valuetext") or "")
    assert abs(number(told[1]) - theirs.item()) < 2e-4


@pytest.mark.nightly
def test_play_writes_token_by_token(page):
    page.get_by_role("button", name="To the start").click()
    settled(page)
    assert row(page, "written") == []
    page.get_by_label("speed").select_option("slow")
    page.get_by_role("button", name="Play").click()
    page.get_by_text("3 of 11 tokens").wait_for()
    page.get_by_role("button", name="Pause").click()
    settled(page)
    count = len(row(page, "written"))
    assert 3 <= count < 11
    check_picture(page, TEXT)
    page.get_by_role("button", name="One token on").click()
    settled(page)
    assert len(row(page, "written")) == count + 1
    check_picture(page, TEXT)


def busy(page: Page) -> None:
    """Show all that can be shown: another run, arcs, an open path, the tour."""
    settled(page)
    slide(page, "Positional encoding", 0.4)
    type_text(page, "3 🎂 1979")
    pick(page, "Masked self-attention, layer 1, head 1")
    page.keyboard.press("Delete")
    settled(page)


@pytest.mark.nightly
def test_nobody_is_shut_out(live_page):
    audit(live_page, "model", busy)
