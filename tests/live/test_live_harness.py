"""The harness itself: a page that complains is a failure."""

import pytest

from live_driving import watch

BOTH = ["chromium", "firefox"]


@pytest.mark.parametrize("live_page", BOTH, indirect=True)
def test_a_page_runs_the_sites_own_modules_and_nothing_else(live_page):
    page = live_page("<p id=here>A text</p>", expected=("event handler",))
    assert page.locator("#here").inner_text() == "A text"
    size = "async () => (await import('/live/engine/linear.js')).Matrix.length"
    assert page.evaluate(size) == 2
    page.evaluate("() => document.body.setAttribute('onclick', 'window.ran = true')")
    page.locator("#here").click()
    assert page.evaluate("() => window.ran") is None


@pytest.mark.parametrize(
    "fault",
    [
        "console.error('so')",
        "setTimeout(() => { throw new Error('so') })",
        "fetch('/live/models/none.json')",
        "fetch('http://127.0.0.2/').catch(() => 0)",
    ],
)
def test_every_complaint_is_seen(live_page, fault, live_site):
    page = live_page(expected=("",))
    seen: list[str] = []
    watch(page, live_site.address, seen)
    page.evaluate(f"() => {{ {fault} }}")
    for _ in range(1000):
        if seen:
            break
        page.wait_for_timeout(20)
