"""Exercises in the page: a number, a choice, a mask; what is said, and what is kept."""

import json

import pytest
from playwright.sync_api import Page, expect

from browsers import violations
from engine.site.exercises import fields
from live_driving import IN_BOTH, SCHEME, WIDER, still
from tformer.check.asked import exercises

ASKED = ("batches", 1), ("bert", 3), ("masks", 2), ("masks", 1), ("transformer", 3)
BODY = "".join(
    f'<div class="admonition question"><p class="admonition-title">{chapter} {n}</p>'
    f"<p>What is asked.</p>{fields(exercises(chapter)[n])}</div>"
    for chapter, n in ASKED
)


def place(page: Page, name: str):
    found = page.locator(f'[data-exercise="{name}"]')
    found.scroll_into_view_if_needed()
    found.locator("form").wait_for()
    return found


def checked(found) -> str:
    found.get_by_role("button", name="Check").click()
    return found.locator(".answer-said").inner_text()


def opened(live_page, **how) -> Page:
    page = live_page(BODY, **how)
    page.locator("form").first.wait_for()
    return page


@pytest.mark.nightly
@IN_BOTH
def test_a_number_a_choice_and_a_mask(live_page):
    page = opened(live_page, fresh=True)
    numbers = place(page, "batches 1")
    assert "Write a number first" in checked(numbers)
    for label, text in (("Tokens", "21"), ("Training", "15"), ("Share", "37.5 %")):
        numbers.get_by_label(label).fill(text)
    said = checked(numbers)
    assert said.startswith("✗ Not right. Tokens in the tensor of targets: You left out")
    assert "✓ Right. Training examples." in said
    for label in ("Tokens", "Training"):
        numbers.get_by_label(label).fill("5")
    said = checked(numbers)
    assert said.count("Write the three rows down") == 1  # the hint, once
    assert "✗ Not right. Training examples." in said
    numbers.get_by_label("Training").fill("15")
    numbers.get_by_label("Tokens").fill("27")
    expect(numbers.locator(".answer-said")).to_be_empty()  # that was another answer
    assert checked(numbers).strip() == "✓ Right."

    choice = place(page, "bert 3")
    assert "Choose one first." in checked(choice)
    choice.get_by_label("Yes: it repeats what it sees").check()
    assert checked(choice).startswith("✗ Not right. In training half of the places")
    choice.get_by_label("No: it trusts them less").check()
    assert checked(choice).startswith("✓ Right. One of the three digits must be wrong.")

    mask = place(page, "masks 2")
    cell = mask.get_by_role("button", name="query 0, key 0")
    cell.click()
    expect(cell).to_have_attribute("aria-pressed", "true")
    cell.click()
    expect(cell).to_have_attribute("aria-pressed", "false")
    cell.click()
    for key in ("ArrowRight", "Space", "ArrowRight", "Space"):  # by the keyboard
        page.keyboard.press(key)
    for t in range(1, 6):
        for s in range(t + 1):
            mask.get_by_role("button", name=f"query {t}, key {s}").click()
    assert checked(mask).startswith("✗ Not right. Every query may look at the prefix")
    mask.get_by_role("button", name="query 1, key 2").click()
    assert checked(mask).strip() == "✓ Right."

    kept = json.loads(page.evaluate("localStorage.getItem('tformer progress')"))
    assert kept == {"batches 1": "right", "bert 3": "right", "masks 2": "right"}
    page.reload()
    assert "✓ You had this right." in place(page, "masks 2").inner_text()
    assert "✓" not in place(page, "masks 1").inner_text()


@IN_BOTH
def test_known_masks_say_what_led_to_them(live_page):
    page = opened(live_page)
    mask = place(page, "transformer 3")
    for s in range(7):
        mask.get_by_role("button", name=f"source token 4, place {s}").click()
    for s in range(4, 7):
        mask.get_by_role("button", name=f"target token 3, place {s}").click()
    assert "Target token 3 sees itself" in checked(mask)
    weights = place(page, "masks 1")
    for t in range(4):
        for s in range(4):
            text = f"1/{t + 1}" if s <= t else "0"
            weights.get_by_label(f"row {t}, number {s}").fill(text)
    assert "You let a query see its whole past" in checked(weights)


LOOKS = """(style) => {
  const [link] = document.querySelectorAll(`link[href$="${style}"]`)
  const set = ["display", "gap", "margin", "padding", "border", "font"]
  const look = (where) => [...document.querySelectorAll(where)]
    .flatMap((x) => set.map((name) => getComputedStyle(x)[name]))
  const both = () => [look("details.answer, details.answer *"), look("form.answer")]
  const shown = both()
  link.disabled = true
  const without = both()
  link.disabled = false
  return [shown, without]
}"""


def test_the_style_of_exercises_leaves_the_answers_of_a_prediction_alone(live_page):
    """Both have the class `answer`."""
    answer = "<details class='answer'><summary>They stay</summary><p>Yes.</p></details>"
    page = opened(lambda body: live_page(f"{answer}{body}"))
    shown, without = page.evaluate(LOOKS, "/live/exercises/exercises.css")
    assert len(shown[0]) == 18
    assert shown[0] == without[0]
    assert shown[1] != without[1]  # the forms have it


@pytest.mark.nightly
def test_everybody_can_use_them(live_page):
    for phone in (False, True):
        page = opened(live_page, phone=phone)
        for name in ("batches 1", "bert 3", "masks 2", "masks 1", "transformer 3"):
            checked(place(page, name))
        assert page.evaluate(WIDER) <= 0
        for scheme in ("default", "slate"):
            page.evaluate(SCHEME, scheme)
            assert violations(still(page), "article") == []
