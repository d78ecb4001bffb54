"""What the reader breaks breaks as in the package, and is shown beside the unbroken."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from live_driving import number, slide, table
from live_explorer import (
    CROSS,
    HEADS,
    bars,
    case_of,
    close,
    computed,
    follow,
    ids_of,
    loaded,
    marks,
    pick,
    row,
    settled,
)
from parity import check_written
from test_live_model import TEXT, opened, written_by
from tformer.generate.sampling import top_k_filter

Open = Callable[..., Page]

CHANGES = [
    ("one head off", {"off": (f"{CROSS}:2",)}),
    (
        "all cross heads of the last layer off",
        {"off": tuple(f"{CROSS}:{h}" for h in range(4))},
    ),
    ("no 1/√d_k", {"scale": 4.0}),
    ("no positions", {"positions": 0.0}),
    ("mask off", {"causal": False}),
]


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
    now = [[c, i in differ] for i, c in enumerate(written)] + [
        ["·", True] for _ in missing
    ]
    assert rows.nth(1).evaluate(CELLS) == now
    verdict = page.locator(".compare-verdict").inner_text()
    differ += missing
    if written == ["▮"]:
        assert verdict == "It writes nothing: the end token (▮) comes first."
    elif differ:
        assert verdict.endswith(f"at {', '.join(str(i + 1) for i in differ)}.")
    else:
        assert verdict.startswith("The same text.")


@pytest.mark.parametrize(("name", "changes"), CHANGES)
def test_what_is_broken_breaks_as_in_the_package(
    live_page: Open, name: str, changes
) -> None:
    page = opened(live_page)
    page.get_by_role("group", name="Experiments").get_by_role(
        "button", name=name
    ).click()
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
            assert close(
                [number(x) for x in cells[1:]], theirs[f"{module}:weights"][head, t], 3
            )
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
    off = [f"decoder.blocks.0.attention:{h}" for h in range(4)]
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
    weights = computed(case)["decoder.blocks.1.attention:weights"][0]
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
