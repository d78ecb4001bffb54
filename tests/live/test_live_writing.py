"""The home's piece: light until a reader wants the model, and then it writes dates."""

import re

import pytest
from playwright.sync_api import Page, expect

from live_driving import IN_BOTH, audit, keys_reach, planted, ready
from live_explorer import (
    MODEL,
    TEXT,
    check_picture,
    loaded,
    marks,
    row,
    settled,
    written_by,
)
from live_serving import ROOT

PICTURE = (ROOT / "docs/includes/writing.svg").read_text("utf-8")
HOME = f"""<figure class="home-writing live" data-live="writing" data-keep>
<div class="writing-still"><button class="again" type="button">Play again</button>
{PICTURE}</div>
<figcaption>A caption. <a class="writing-open" href="/live/">Open the whole model</a>
</figcaption></figure>"""
ASKED = """() => performance.getEntriesByType("resource").map(
  (entry) => new URL(entry.name).pathname)"""
OTHER, UNSURE = "August 4, 2024", "3 m"


def written(page: Page) -> Page:
    """Wait until all is written."""
    page.get_by_text("11 of 11 tokens").wait_for()
    return page


def write(page: Page, text: str) -> Page:
    page.get_by_label("A date, in any").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator(".stage-source bdi")).to_have_text(marks(text))
    return written(page)


def test_the_model_comes_when_it_is_wanted(live_page):
    page = ready(live_page(HOME, phone=True))
    page.wait_for_load_state("networkidle")
    before = page.evaluate(ASKED)
    assert not [x for x in before if "/models/" in x or "/engine/" in x]
    assert len([x for x in before if x.startswith("/live/")]) <= 8, before
    assert page.locator("svg.writing").is_visible()
    page.get_by_role("button", name=OTHER).tap()
    page.locator(".transport-count").wait_for()
    # Whoever wants nothing to move sees all at once.
    assert page.locator(".transport-count").inner_text() == "11 of 11 tokens"
    models = [x for x in page.evaluate(ASKED) if "/models/" in x]
    files = ("config.json", "model.safetensors")
    assert models == [f"/live/models/dates-as-typed/{file}" for file in files]
    assert page.locator("svg.writing").is_hidden()
    check_picture(page, OTHER)
    assert "".join(row(page, "written")) == written_by(OTHER) + "▮"


def test_it_comes_unasked_once_the_picture_was_seen(live_page, live_site):
    live_site.plant("pieces/writing.js", "GLANCE = 6000", "GLANCE = 50")
    page = ready(live_page(HOME))
    check_picture(written(page), TEXT)


@IN_BOTH
def test_it_writes_as_the_package(live_page):
    page = ready(live_page(HOME))
    page.get_by_role("button", name="Watch it write").click()
    check_picture(written(page), TEXT)
    for text in ("25 Απριλίου 1914", "<b>3 mai</b> 1979 🎂"):
        write(page, text)
        assert "".join(row(page, "written")) == written_by(text) + "▮"
        said = page.locator("live-writing > .live-said")
        expect(said).to_have_text(f"It writes {written_by(text)}.")
    assert page.locator(".stage b").count() == 0
    unknown = [c for c in text if c not in loaded()[1].characters]
    assert page.locator(".stage-source .unknown bdi").all_inner_texts() == unknown
    assert "Unknown to the model" in page.locator(".entry-note").inner_text()


@pytest.mark.nightly
def test_a_token_is_looked_at_and_taken_along_to_the_explorer(live_page, live_site):
    page = write(ready(live_page(HOME)), OTHER)
    page.get_by_role("button", name="One token back").click()
    page.get_by_text("10 of 11 tokens").wait_for()
    page.locator(".stage-written .stage-token").nth(3).click()
    page.get_by_text("Token 4: what could follow").wait_for()
    check_picture(page, OTHER)
    title = page.locator(".probabilities .live-title").inner_text()
    explorer = live_site.page(MODEL).removeprefix(live_site.address)
    live_site.changed["/live/"] = live_site.pages[explorer]
    page.get_by_role("link", name="Open the whole model").click()
    settled(ready(page))
    assert page.get_by_label("A date, in any").input_value() == OTHER
    assert page.locator(".transport-count").inner_text() == "10 of 11 tokens"
    assert page.locator(".probabilities .live-title").inner_text() == title


def test_without_a_model_the_picture_stays(live_page, live_site):
    live_site.changed["/live/models/dates-as-typed/model.safetensors"] = None
    page = ready(live_page(HOME, expected=("404",)))
    page.get_by_role("button", name=OTHER).click()
    message = page.get_by_role("alert")
    expect(message).to_contain_text("model.safetensors of the model is missing")
    assert page.locator("svg.writing").is_visible()
    live_site.changed.clear()
    page.get_by_role("button", name="Try again").click()
    check_picture(written(page), OTHER)
    assert message.is_hidden()


@pytest.mark.nightly
def test_the_keyboard_alone_writes(live_page):
    page = ready(live_page(HOME))
    page.get_by_role("button", name="Watch it write").focus()
    page.keyboard.press("Enter")
    written(page)
    names = keys_reach(page)
    assert names[0] == "A date, in any of 23 languages"
    assert names[-6:-4] == [TEXT, OTHER]  # the examples, below what is written
    assert names[-12:-6] == [
        "end, probability 100 %",
        "To the start",
        "One token back",
        "Play",
        "One token on",
        "speed",
    ]


@pytest.mark.nightly
def test_it_is_played_unless_the_reader_wants_none_to_move(live_page):
    page = ready(live_page(HOME, reduced_motion="no-preference"))
    page.get_by_role("button", name=OTHER).click()
    page.get_by_text(re.compile(r"^[2-5] of 11 tokens")).wait_for()
    assert page.get_by_role("button", name="Pause").is_visible()
    written(page)
    assert page.get_by_role("button", name="Play", exact=True).is_visible()  # at once
    assert page.locator(".stage-wires path:not(.all)").count() == 0
    check_picture(page, OTHER)


test_a_planted_fault_is_seen = planted(
    "writing",
    lambda page: check_picture(write(page, UNSURE), UNSURE),
    ("explorer/room.js", "weights?.row(t)", "weights?.row(0)"),
    ("explorer/room.js", "view.shown.chosen", "[1, ...view.shown.chosen]"),
    ("explorer/probabilities.js", "= [step.probabilities[id]", "= [step.logits[id]"),
    ("explorer/state.js", "cross_attention:2", "cross_attention:1"),
    body=HOME,
)


@pytest.mark.nightly
def test_nobody_is_shut_out(live_page):
    audit(live_page, "writing", lambda page: write(page, "3 🎂 1979"), HOME)
