"""What the reader breaks breaks as in the package, and is shown beside the unbroken."""

import re

import pytest
from playwright.sync_api import Page

from live_driving import ready, slide
from live_explorer import (
    CROSS,
    HEADS,
    TEXT,
    WITHOUT_MASK,
    bars,
    case_of,
    check_text,
    check_weights,
    computed,
    follow,
    ids_written,
    marks,
    pick,
    row,
    settled,
    written_by,
)
from tformer.generate.sampling import top_k_filter

PIECE = "model"
CHANGES = {
    "one head off": {"off": (f"{CROSS}:2",)},
    "all cross heads of the last layer off": {
        "off": tuple(f"{CROSS}:{h}" for h in range(4))
    },
    "no 1/√d_k": {"scale": 4.0},
    "no positions": {"positions": 0.0},
    "mask off": {"causal": False},
}
CELLS = """row => [...row.querySelectorAll(".compare-cell")].map(cell =>
  [cell.querySelector("bdi").innerText,
   cell.classList.contains("changed") && cell.innerText.includes("≠")])"""


def check_board(page: Page, written: list[str]) -> None:
    """The unbroken text above, the other below, and a mark at each that differs."""
    trained = marks(written_by(TEXT))
    rows = page.locator(".compare-row:visible")
    assert [m for m, _ in rows.nth(0).evaluate(CELLS)] == trained
    assert rows.nth(0).locator(".compare-name").inner_text() == "as trained"
    assert rows.nth(1).locator(".compare-name").inner_text() == "now"
    differ = [i for i, c in enumerate(written) if trained[i : i + 1] != [c]]
    missing = range(len(written), len(trained))
    now = [[c, i in differ] for i, c in enumerate(written)]
    assert rows.nth(1).evaluate(CELLS) == [*now, *([["·", True]] * len(missing))]
    verdict = page.locator(".compare-verdict").inner_text()
    differ += missing
    if written == ["▮"]:
        assert verdict == "It writes nothing: the end token (▮) comes first."
    elif differ:
        assert verdict.endswith(f"at {', '.join(str(i + 1) for i in differ)}.")
    else:
        assert verdict.startswith("The same text.")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_broken_breaks_as_in_the_package(page, name):
    experiments = page.get_by_role("group", name="Experiments")
    experiments.get_by_role("button", name=name).click()
    settled(page)
    written = row(page, "written")
    case = case_of(TEXT, written, **CHANGES[name])
    check_text(case, written)
    check_board(page, written)
    for spoken, module, head in HEADS[8::5]:  # masked and cross, of both layers
        pick(page, spoken)
        check_weights(page, computed(case)[f"{module}:weights"][head])
    page.get_by_role("button", name="Undo all").click()
    settled(page)
    assert page.locator(".compare-verdict").inner_text() == "Nothing is changed."
    assert "".join(row(page, "written")) == written_by(TEXT) + "▮"


def test_sliders_and_switches_do_what_they_say(page):
    slide(page, "Scale", 2)
    slide(page, "Positional encoding", 0.5)
    pick(page, "Cross-attention, layer 2, head 1")
    page.keyboard.press("Delete")
    page.get_by_role("button", name="all off: Masked self-attention, layer 1").click()
    settled(page)
    off = [f"decoder.blocks.0.attention:{h}" for h in range(4)]
    written = row(page, "written")
    changes = {"scale": 2.0, "positions": 0.5, "off": (f"{CROSS}:0", *off)}
    check_board(page, written)
    check_text(case_of(TEXT, written, **changes), written)
    assert page.locator(".maps-head.off").count() == 5
    page.get_by_role("switch", name="Causal mask").uncheck()
    settled(page)
    case = case_of(TEXT, row(page, "written"), causal=False, **changes)
    pick(page, "Masked self-attention, layer 2, head 1")
    weights = computed(case)["decoder.blocks.1.attention:weights"][0]
    assert weights.triu(1).sum() > 0.1
    check_weights(page, weights)


@pytest.mark.nightly
def test_temperature_and_top_k_change_the_probabilities(page):
    slide(page, "Positional encoding", 0)
    slide(page, "Temperature", 3)
    slide(page, "Top-k", 3)
    texts = set()
    for _ in range(4):
        page.get_by_role("button", name="Draw again").click()
        settled(page)
        at = min(2, len(row(page, "written")) - 1)  # a draw can end early
        follow(page, "written", at)
        written = row(page, "written")
        texts.add("".join(written))
        logits = computed(case_of(TEXT, written, positions=0.0))["logits"][at] / 3
        p = top_k_filter(logits[None], 3).softmax(-1)[0]
        found = bars(page)
        for i, value in zip(ids_written(found), found.values(), strict=True):
            assert abs(value - p[i].item()) <= 0.0006 or i == 2
        assert all(p[i] > 0 for i in ids_written(written[at : at + 1]) if i != 2)
    assert len(texts) > 1
    page.wait_for_url(re.compile("seed=4"))
    page.reload()
    assert row(settled(ready(page)), "written") == written  # the same seed


def test_trained_without_the_mask_is_another_model(page):
    page.get_by_role("radio", name="trained without the mask").check()
    page.locator(".compare-name", has_text="given the answer").wait_for()
    settled(page)
    written, other = row(page, "written"), WITHOUT_MASK
    check_board(page, written)
    check_text(case_of(TEXT, written, causal=False), written, other)
    given = computed(case_of(TEXT, marks(written_by(TEXT)), causal=False), other)
    cells = page.locator(".compare-row:visible").nth(2).locator("bdi").all_inner_texts()
    assert ids_written(cells) == given["logits"].argmax(-1).tolist()
    assert page.get_by_role("switch", name="Causal mask").is_disabled()
