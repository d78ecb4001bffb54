"""A planted fault in the page: one click shows it, Check judges what is mended."""

import json

import pytest
from playwright.sync_api import Page, expect

from browsers import violations
from live_driving import IN_BOTH, SCHEME, WIDER, still
from live_python import SOON, begun, exercise, needs_python, verdict
from tformer.check.exercises import EXERCISES
from tformer.check.planting import planted, solution

ROTARY = EXERCISES["rotary"]
FAULTS = planted(ROTARY.spec, "rotary")
RIGHT = solution(ROTARY.spec, "rotary")
MINE = "import numpy as np\n\n# mine"


def mending(page: Page) -> Page:
    """Take the second task, by the keyboard."""
    page.get_by_role("radio", name="Write it").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Mend a planted fault")).to_be_checked()
    return page


def field(page: Page) -> str:
    return page.locator(".python-field").input_value()


def waiting(live_page) -> Page:
    """Open an editor whose Python never comes: a fault does not wait for it."""
    page = live_page(exercise(), fresh=True)
    page.route("**/assets/python/**", lambda _: None)
    begun(page).locator(".python-field").fill(MINE)
    return page


@needs_python
def test_a_fault_is_shown_and_no_draft_is_lost(live_page):
    page = mending(waiting(live_page))
    assert field(page) == FAULTS[0].source
    assert FAULTS[0].mistake.sentence not in page.locator("article").inner_text()
    page.locator(".python-field").fill("# half mended")
    page.get_by_role("radio", name="Write it").check()
    assert field(page) == MINE
    assert page.get_by_role("button", name="Another fault").is_hidden()
    mending(page)
    assert field(page) == "# half mended"
    page.reload()
    assert field(begun(page)) == MINE


@pytest.mark.nightly
@needs_python
@IN_BOTH
def test_all_faults_take_their_turn(live_page):
    page = mending(waiting(live_page))
    shown = []
    for n in range(1, len(FAULTS) + 1):
        assert f"Fault {n} of {len(FAULTS)}" in page.locator(".live-piece").inner_text()
        shown.append(field(page))
        page.get_by_role("button", name="Another fault").click()
    assert shown == [fault.source for fault in FAULTS]
    assert field(page) == shown[0]  # and from the first on again
    page.locator(".python-field").fill("# half mended")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Reset").click()
    assert field(page) == shown[0]
    keys = page.evaluate("Object.keys(localStorage).sort()")
    assert keys == ["tformer draft rotary"]


@pytest.mark.nightly
@needs_python
def test_what_is_mended_is_judged_and_remembered(live_page, live_site):
    page = mending(begun(live_page(exercise(), fresh=True)))
    first, second = FAULTS[0].mistake, FAULTS[1].mistake
    assert verdict(page, field(page)).startswith("✗ Not right yet. In the case “")
    name = page.get_by_text(first.sentence)
    assert name.is_hidden()
    page.get_by_text("Which mistake gives these numbers").click()
    assert name.is_visible()
    told = verdict(page, RIGHT)
    assert told.startswith("✓ Mended. It gives the right numbers in every case.")
    assert first.sentence in told
    links = page.locator(".python-mistake a").evaluate_all("all => all.map(String)")
    assert links[1] == f"{live_site.address}/mistakes/rotary/{first.id}/"
    kept = json.loads(page.evaluate("localStorage.getItem('tformer progress')"))
    assert kept == {"rotary mended": first.id}  # the exercise is not done by it
    page.reload()
    mending(begun(page))
    assert field(page) == FAULTS[1].source  # the next one
    assert second.sentence in verdict(page, RIGHT)
    page.get_by_role("radio", name="Write it").check()
    assert page.locator(".python-verdict").is_hidden()
    assert verdict(page, RIGHT).startswith("✓ Right.")


@pytest.mark.nightly
@needs_python
def test_while_code_runs_the_task_stays(live_page):
    page = mending(begun(live_page(exercise(), fresh=True)))
    page.locator(".python-field").fill("while True: pass")
    page.get_by_role("button", name="Run").click()
    expect(page.locator(".python-state")).to_have_text("Your code runs.", timeout=SOON)
    for control in ("radio", "Write it"), ("button", "Another fault"):
        assert page.get_by_role(control[0], name=control[1]).is_disabled()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("radio", name="Write it")).to_be_enabled()


@pytest.mark.nightly
@needs_python
def test_without_its_file_the_editor_does_without(live_page, live_site):
    live_site.changed["/live/python/faults/rotary.json"] = None
    page = begun(live_page(exercise(), fresh=True, expected=("404",)))
    assert page.get_by_role("radio").count() == 0


@pytest.mark.nightly
@needs_python
def test_a_link_to_a_mistake_of_a_chapters_exercise_leads_to_its_page(
    live_page, live_site
):
    page = mending(begun(live_page(exercise("residuals 2"), fresh=True)))
    verdict(page, field(page))
    page.get_by_text("Which mistake gives these numbers").click()
    first = planted(EXERCISES["rms_norm"].spec, "rms_norm")[0].mistake
    links = page.locator(".python-mistake a").evaluate_all("all => all.map(String)")
    assert links[1] == f"{live_site.address}/mistakes/rms_norm/{first.id}/"


@pytest.mark.nightly
@needs_python
def test_nobody_is_shut_out(live_page):
    for phone in (False, True):
        page = mending(begun(live_page(exercise(), phone=phone, fresh=True)))
        if phone:
            page.set_viewport_size({"width": 360, "height": 740})
        verdict(page, field(page))
        assert violations(page, ".python-editor") == []
        assert page.evaluate(WIDER) <= 0
        page.evaluate(SCHEME, "slate")
        assert violations(still(page), ".python-editor") == []
