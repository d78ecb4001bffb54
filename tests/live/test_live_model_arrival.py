"""The explorer comes without a jump, is led through by the keyboard, and is sent on."""

import pytest

from live_driving import ready
from live_explorer import MODEL, settled, type_text

PAGE = MODEL.replace("<figure", "<figure data-wait") + "<p>What follows.</p>" * 40
SHIFT = """() => { window.moved = 0
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.moved += entry.value
  }).observe({type: "layout-shift", buffered: true}) }"""
FOCUS = "() => document.activeElement.textContent"


@pytest.mark.nightly
@pytest.mark.parametrize("phone", [False, True])
def test_it_comes_without_a_jump(live_page, phone):
    page = live_page(PAGE, phone=phone, fresh=True)
    page.evaluate(SHIFT)
    for _ in range(3):  # a reader scrolls, and has not asked for anything to move
        page.mouse.wheel(0, 250)
        page.wait_for_timeout(100)
    settled(ready(page))
    page.wait_for_timeout(300)
    assert page.evaluate("window.moved") <= 0.15  # 0.9 without the room


@pytest.mark.nightly
def test_the_tour_by_the_keyboard_alone(live_page):
    page = settled(ready(live_page(MODEL)))
    page.get_by_role("button", name="Take the tour").focus()
    page.keyboard.press("Enter")
    page.get_by_text("1 of 8", exact=True).wait_for()
    page.wait_for_function("document.activeElement.textContent === 'Next'")
    page.keyboard.press("Enter")
    page.get_by_text("2 of 8", exact=True).wait_for()
    page.keyboard.press("Escape")
    settled(page)
    assert page.locator(".tour").is_hidden()
    assert page.evaluate(FOCUS).startswith("Take the tour")
    page.evaluate("location.hash = 'tour=6'")
    text = page.get_by_text("Now this head is off").inner_text()
    before, _, after = text.partition("went from ")[2].partition(" to ")
    assert not after or not after.startswith(before), text


@pytest.mark.nightly
def test_a_link_to_what_is_seen_is_copied(live_page):
    page = live_page(
        MODEL, fresh=True, permissions=("clipboard-read", "clipboard-write")
    )
    settled(ready(page))
    type_text(page, "20 de mayo de 2037")
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Link copied", exact=True).wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("#text=20+de+mayo+de+2037")
    assert link == page.url


def test_a_script_that_failed_is_told_and_comes_with_the_page_again(
    live_page, live_site
):
    missing = '<figure class="live" data-live="masks"><p>The picture.</p></figure>'
    live_site.changed["/live/pieces/masks.js"] = None
    page = live_page(missing, fresh=True, expected=("404", "masks.js"))
    again = page.get_by_role("button", name="Load the page again")
    again.wait_for()
    assert page.get_by_text("The picture.").is_visible()
    live_site.changed.clear()
    again.click()
    ready(page)


def test_the_states_of_switches_are_seen_in_forced_colours(live_page):
    page = live_page(MODEL, fresh=True, forced_colors="active")
    settled(ready(page))
    colour = "all => all.map((x) => getComputedStyle(x).backgroundColor)"
    on = page.locator(".live-options input:checked + span").evaluate_all(colour)
    off = page.locator(".live-options input:not(:checked) + span").evaluate_all(colour)
    assert on
    assert off
    assert not set(on) & set(off)
    switches = page.locator(".live-toggle input:checked").evaluate_all(colour)
    others = page.locator(".live-toggle input:not(:checked)").evaluate_all(colour)
    assert not set(switches) & set(others)
    bar = page.locator(".bar-fill").first.evaluate(f"x => ({colour})([x])[0]")
    track = page.locator(".bar-track").first.evaluate(f"x => ({colour})([x])[0]")
    assert bar != track
