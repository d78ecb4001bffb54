"""The card of a broken head, shared by a browser that hands files to other programs."""

import pytest
from playwright.sync_api import Page, expect

from live_driving import ready
from live_explorer import HEADS, written_by
from test_live_break_head import DATES, FIGURE, NEEDED, SHARP, bet, take

# A browser's dialogue: `shared` is what it got, `refusal` the name of what it throws.
SHARES = """() => {
  window.refusal = ""
  window.shared = null  // a page is kept from test to test
  navigator.canShare = (given) => given.files?.[0]?.type === "image/png"
  navigator.share = async ({ files, ...rest }) => {
    const [file, ...more] = files
    const head = new Uint8Array(await file.arrayBuffer()).slice(1, 4)
    window.shared = { ...rest, more: more.length, name: file.name, type: file.type,
      begins: String.fromCharCode(...head) }
    if (refusal) throw new DOMException("no", refusal)
  }
}"""
WITHOUT = "() => { navigator.canShare = navigator.share = undefined }"
SHARE, INSTEAD = "Share the card", "Save it, and send the file"


def bet_on(live_page, program: str, head: str = NEEDED) -> Page:
    page = ready(live_page(FIGURE))
    page.evaluate(program)
    bet(take(page, DATES[0]), head, DATES[0])
    return page


def test_the_card_is_shared_with_a_link_that_shows_the_bet(live_page):
    page = bet_on(live_page, SHARES)
    button = page.get_by_role("button", name=SHARE)
    button.click()
    page.wait_for_function("() => window.shared")
    shared = page.evaluate("shared")
    assert shared["name"] == "break-the-head.png"
    assert (shared["type"], shared["begins"], shared["more"]) == ("image/png", "PNG", 0)
    assert shared["title"] == "I broke a Transformer with one switch."
    assert f"It reads {DATES[0]} and writes {written_by(DATES[0])}." in shared["text"]
    assert shared["text"].startswith(shared["title"])
    here, _, place = shared["url"].partition("#")
    assert here == page.url.split("#")[0]
    (at,) = [f"{module}:{n}" for name, module, n in HEADS if name == NEEDED]
    assert place == f"break-head={at}&text={DATES[0]}"
    assert "#" not in page.url  # the address of the page stays

    page.evaluate("() => { shared = null; refusal = 'AbortError' }")
    button.click()
    page.wait_for_function("() => window.shared")
    page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert button.is_visible()  # whoever closed the dialogue is told nothing


@pytest.mark.nightly
def test_what_the_browser_refuses_is_told_with_another_way(live_page):
    page = bet_on(live_page, SHARES)
    page.evaluate("() => { refusal = 'NotAllowedError' }")
    button = page.get_by_role("button", name=SHARE)
    button.click()
    page.get_by_role("button", name=INSTEAD).wait_for()
    said = page.locator("live-break-head > .live-said")
    expect(said).to_contain_text(f"It could not be shared. {INSTEAD}.")
    expect(button).to_be_visible()  # again, after three seconds


@pytest.mark.nightly
def test_a_head_that_breaks_nothing_has_another_title(live_page):
    page = bet_on(live_page, SHARES, SHARP)
    page.get_by_role("button", name=SHARE).click()
    page.wait_for_function("() => window.shared")
    assert page.evaluate("shared.title") == "One head off, and nothing happened."


@pytest.mark.nightly
@pytest.mark.parametrize(
    "program", [WITHOUT, "() => { navigator.canShare = () => false }"]
)
def test_a_browser_that_hands_on_no_files_offers_it_to_nobody(live_page, program):
    page = bet_on(live_page, program)
    assert page.get_by_role("button", name="Save the card").is_visible()
    assert page.get_by_role("button", name=SHARE).count() == 0
