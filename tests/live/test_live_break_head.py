"""Three clicks break a date: what is written and said is what the package does."""

import pytest
from playwright.sync_api import Page, expect

from live_driving import IN_BOTH, audit, keys_reach, number, planted, ready
from live_explorer import HEADS, MODEL, case_of, check_text, computed, marks, written_by
from live_serving import LiveSite
from test_live_model_breaks import CELLS

PIECE = "break-head"
FIGURE = f'<figure class="live" data-live="{PIECE}"><p>The sentence.</p></figure>'
DATES = ["22.11.2026", "July 20th, 1969", "25 December 2025"]
NEEDED = "Masked self-attention, layer 1, head 3"
SHARP = "Cross-attention, layer 1, head 2"
CONTENT = """canvas => {
  const context = canvas.getContext("2d")
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height)
  return new Set(new Uint32Array(data.buffer)).size }"""


def take(page: Page, date: str) -> Page:
    """The first click."""
    page.get_by_role("button", name=date, exact=True).click()
    expect(board(page)).to_have_text(marks(written_by(date)))
    return page


def board(page: Page, row: int = 0):
    return page.locator(".compare-row").nth(row).locator("bdi")


def bet(page: Page, head: str, date: str) -> list[str]:
    """The second click and the third; return the tokens that are written now."""
    page.get_by_role("radio", name=head).check()
    page.get_by_role("button", name=f"Switch off: {head}").click()
    page.locator(".bet-result").wait_for()
    cells = page.locator(".compare-row").nth(1).evaluate(CELLS)
    trained = marks(written_by(date))
    for i, (mark, differs) in enumerate(cells):
        assert differs == (trained[i : i + 1] != [mark])
    return [mark for mark, _ in cells if mark != "·"]


def check(page: Page, date: str, head: str) -> bool:
    """Hold one bet to the package; return whether the head broke the date."""
    written = bet(page, head, date)
    (at,) = [(module, n) for name, module, n in HEADS if name == head]
    check_text(case_of(date, written, off=(f"{at[0]}:{at[1]}",)), written)
    broken = "".join(written) != written_by(date) + "▮"
    told = page.locator(".bet-told").inner_text()
    text = "".join(written).removesuffix("▮")
    assert told.startswith("Right: " if broken else "Not this one. ")
    assert text in told
    check_looks(page, date, *at)
    said = page.locator("live-break-head > .live-said")
    expect(said).to_contain_text(told)
    return broken


def check_looks(page: Page, date: str, module: str, head: int) -> None:
    """The number in the sentence about a head is the weight that it speaks of."""
    written = marks(written_by(date))
    weights = computed(case_of(date, written))[f"{module}:weights"][head]
    sentence = page.locator(".bet-looks").inner_text()
    share = number(" ".join(sentence.split(": ")[-1].split("is ")[-1].split()[:2]))
    if "cross" in module:
        assert abs(share - weights.amax(-1).mean().item()) <= 0.0051
        seen = [*date, "end"]
        first = weights[:4].argmax(-1).tolist()
        names = ", ".join(seen[s].replace(" ", "space") for s in first)
        assert f"for {''.join(written[:4])} at {names}" in sentence
        return
    places = range(1 if "decoder" in module else 3)
    means = {f"column {s}": weights[:, s].mean().item() for s in range(len(weights))}
    for by in {k for x in range(3) for k in (x, -x)} if len(places) > 1 else (0, 1, 2):
        diagonal = weights.diagonal(-by)
        means[f"by {by}"] = (diagonal.sum() / len(weights)).item()
    assert abs(share - max(means.values())) <= 0.0051, (sentence, means)


@IN_BOTH
def test_three_clicks_break_a_date(live_page):
    page = ready(live_page(FIGURE))
    assert not page.locator(".bet-head").count()  # the model has not been asked for
    take(page, DATES[0])
    assert page.locator(".bet-head").count() == len(HEADS)
    assert page.get_by_role("button", name="3. Switch it off").is_disabled()
    assert check(page, DATES[0], NEEDED)
    page.get_by_role("button", name="Switch it on again").click()
    assert page.locator(".bet-result").is_hidden()
    assert not check(page, DATES[0], SHARP)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("date", DATES)
def test_each_date_has_heads_that_break_it_and_all_are_found(live_page, date):
    page = take(ready(live_page(FIGURE)), date)
    bet(page, SHARP, date)
    page.get_by_role("button", name=f"Try all {len(HEADS)} heads").click()
    page.get_by_text("each switched off alone").wait_for()
    breaking = []
    for name, module, head in HEADS:
        case = case_of(date, marks(written_by(date)), off=(f"{module}:{head}",))
        logits = computed(case)["logits"]
        if (
            logits.argmax(-1).tolist()
            != computed(case_of(date, marks(written_by(date))))["logits"]
            .argmax(-1)
            .tolist()
        ):
            breaking.append(name)
    assert breaking
    assert SHARP not in breaking
    found = page.locator(".bet-found").inner_text()
    assert found.startswith(f"{len(breaking)} of {len(HEADS)} heads break")
    assert found.endswith(f"alone: {'; '.join(breaking)}.")
    marked = page.locator(".breaks-it").evaluate_all("all => all.map((x) => x.title)")
    assert marked == breaking


@pytest.mark.nightly
def test_a_link_shows_the_same_bet(live_page, live_site: LiveSite):
    page = take(ready(live_page(FIGURE, fresh=True)), DATES[1])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    bet(page, NEEDED, DATES[1])
    told = page.locator(".bet-told").inner_text()
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Link copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    tall = '<svg viewBox="0 0 1 3"></svg>'
    body = live_site.page(f"{MODEL}{tall}{FIGURE}{tall}")
    page.goto(body + link[link.index("#") :])
    expect(page.locator(".bet-told")).to_have_text(told)
    assert page.get_by_role("radio", name=NEEDED).is_checked()
    expect(page.locator(".bet-told")).to_be_in_viewport()
    assert page.url.endswith(link[link.index("#") :])  # the explorer leaves it alone


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "hash_",
    [
        "#break-head=encoder.blocks.9.attention:1&text=3+May+1979",
        "#break-head=x",
        "#a=b",
    ],
)
def test_an_address_that_names_no_head_breaks_nothing(live_page, live_site, hash_):
    page = live_page(fresh=True)
    page.goto(live_site.page(FIGURE) + hash_)
    ready(page)
    page.get_by_role("button", name=DATES[0], exact=True).click()
    expect(board(page)).to_have_text(marks(written_by(DATES[0])))
    assert page.locator(".bet-result").is_hidden()


def test_the_card_is_drawn_saved_and_shared(live_page):
    page = take(ready(live_page(FIGURE)), DATES[0])
    written = "".join(bet(page, NEEDED, DATES[0])).removesuffix("▮")
    card = page.get_by_role("img", name=f"{DATES[0]} and writes {written_by(DATES[0])}")
    assert written in (card.get_attribute("aria-label") or "")
    assert card.evaluate(CONTENT) > 20
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the card").click()
    assert download.value.suggested_filename == "break-the-head.png"
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_date_of_ones_own_and_what_is_unlike_the_training(live_page):
    page = ready(live_page(FIGURE))
    own = page.get_by_label("Your own date")
    for text, unlike in (("3 May 1979", False), ("22 November 26", True)):
        own.fill(text)
        page.keyboard.press("Enter")
        expect(board(page)).to_have_text(marks(written_by(text)))
        assert page.locator(".bet-note").is_visible() == unlike


def test_nothing_is_scrolled_between_the_clicks_on_a_phone(live_page):
    """The reader's page of 390 by 664, with what a phone shows of it."""
    tall = '<svg viewBox="0 0 1 3"></svg>'
    page = live_page(f"{tall}{FIGURE}{tall}", phone=True, fresh=True)
    page.set_viewport_size({"width": 390, "height": 664})
    page.locator("figure").scroll_into_view_if_needed()
    ready(page).get_by_role("button", name=DATES[0], exact=True).tap()
    expect(page.locator(".bet-switch")).to_be_in_viewport(ratio=1)
    at = page.evaluate("scrollY")
    page.get_by_role("radio", name=SHARP).tap()
    page.locator(".bet-switch").tap()
    for part in (".bet-date >> nth=0", ".bet-told", ".bet-looks", ".bet-links"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == at


def test_the_keyboard_alone_breaks_a_date(live_page):
    page = ready(live_page(FIGURE))
    keys_reach(page, until=DATES[0])
    page.keyboard.press("Enter")
    page.locator(".bet-head").first.wait_for()
    names = keys_reach(page)
    assert names == [*DATES, "Your own date", HEADS[0][0]]
    keys_reach(page, until=HEADS[0][0])
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".bet-told")).to_contain_text("Right: without it")


def test_without_the_model_it_is_told_and_tried_again(live_page, live_site):
    live_site.changed["/live/models/dates-as-typed/model.safetensors"] = None
    page = ready(live_page(FIGURE, expected=("404",)))
    page.get_by_role("button", name=DATES[0], exact=True).click()
    message = page.get_by_role("alert")
    expect(message).to_contain_text("model.safetensors of the model is missing")
    live_site.changed.clear()
    page.get_by_role("button", name="Try again").click()
    expect(board(page)).to_have_text(marks(written_by(DATES[0])))
    assert message.is_hidden()


test_a_planted_fault_is_seen = planted(
    PIECE,
    lambda page: check(take(page, DATES[2]), DATES[2], SHARP),
    (
        "pieces/break-head/game.js",
        "off: [head] }) : whole",
        "off: [bets.names[9]] }) : whole",
    ),
    ("pieces/break-head/words.js", "sum / rows.length", "sum / 10"),
    (
        "pieces/break-head/words.js",
        "if (!breaks(whole, shown))",
        "if (breaks(whole, shown))",
    ),
    ("explorer/maps.js", "Number(at) + 1}", "Number(at)}"),
    body=FIGURE,
)


@pytest.mark.nightly
def test_nobody_is_shut_out(live_page):
    def busy(page: Page) -> None:
        take(page, DATES[0])
        bet(page, NEEDED, DATES[0])

    audit(live_page, PIECE, busy, FIGURE)
