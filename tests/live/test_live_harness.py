"""The harness itself: a page that complains is a failure."""

import pytest

from browsers import watch
from live_driving import IN_BOTH_BY_DAY


@IN_BOTH_BY_DAY
def test_a_page_runs_the_sites_own_modules_and_nothing_else(live_page):
    page = live_page("<p id=here>A text</p>", expected=("event handler",))
    assert page.locator("#here").inner_text() == "A text"
    size = "async () => (await import('/live/engine/linear.js')).Matrix.length"
    assert page.evaluate(size) == 2
    page.evaluate("() => document.body.setAttribute('onclick', 'window.ran = true')")
    page.locator("#here").click()
    assert page.evaluate("() => window.ran") is None


def test_every_complaint_is_seen(live_page, live_site):
    page = live_page(expected=("",))
    seen: list[str] = []
    watch(page, live_site.address, seen)
    for fault in (
        "console.error('so')",
        "setTimeout(() => { throw new Error('so') })",
        "fetch('/live/models/none.json')",
        "fetch('http://127.0.0.2/').catch(() => 0)",
    ):
        page.evaluate(f"() => {{ {fault} }}")
        page.wait_for_timeout(200)
        assert seen, fault
        seen.clear()


WAITING = """
<figure class="live" data-live="width" id="here"><p>The picture.</p></figure>
<figure class="live" data-live="width" data-wait><p>The picture.</p></figure>"""


@pytest.mark.parametrize("sign", ["a move", "a key", "an address with a state", "time"])
def test_a_piece_that_waits_comes_when_the_reader_is_there(live_page, sign):
    """It is no part of the first load; the one beside it does not wait."""
    page = live_page(fresh=True)
    page.clock.install()
    if sign == "an address with a state":
        page.evaluate("() => { location.hash = 'text=x' }")
    page.evaluate(
        "(html) => { document.body.innerHTML = html; return import('/live/load.js') }",
        WAITING,
    )
    page.locator("#here.live-on live-width").wait_for()
    if sign != "an address with a state":
        assert page.locator("[data-wait] live-width").count() == 0
        if sign == "a move":
            page.mouse.move(50, 50)
        elif sign == "a key":
            page.keyboard.press("Tab")
        else:
            page.clock.run_for(6_000)
    page.locator("[data-wait].live-on live-width").wait_for(timeout=10_000)
