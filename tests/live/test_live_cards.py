"""Five cards a day: which come, when they come again, and what is kept of it."""

import datetime
import json
import re
from html import unescape

import pytest
from playwright.sync_api import Page, expect

from live_driving import audit, figure, planted, ready
from live_serving import DOCS, known_questions

PIECE = "cards"
FIGURE = figure(PIECE)
DAYS = [1, 2, 4, 8, 16]
TODAY = datetime.date(2026, 11, 26)
CARDS = {
    name: json.loads(known_questions()[f"{name}.json"])
    for name in ("attention", "masks", "heads")
}
NO_STORAGE = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("not allowed", "SecurityError") } })"""


@pytest.fixture
def cards(live_page):
    """Open the page on a day, with what is kept."""

    def opened(
        *chapters: str,
        day: datetime.date = TODAY,
        kept: dict | None = None,
        script: str = "",
    ) -> Page:
        page = live_page(fresh=True)
        if script:
            page.add_init_script(script)
        page.clock.set_fixed_time(f"{day}T12:00:00")
        values = {"tformer reading": {"opened": [*chapters]}, **(kept or {})}
        if not script:
            for name, value in values.items():
                page.evaluate(
                    "([name, text]) => localStorage.setItem(name, text)",
                    [name, json.dumps(value)],
                )
        return page

    return opened


def open_cards(page: Page, live_site) -> Page:
    page.goto(live_site.page(FIGURE))
    return ready(page)


def answer(page: Page, knew: bool) -> str:
    """Answer the card that is shown; return its question."""
    question = page.locator(".cards-question").inner_text()
    page.get_by_text("Show the answer").click()
    page.get_by_role("button", name="Knew it" if knew else "Not yet").click()
    return question


def kept(page: Page, name: str):
    return json.loads(page.evaluate("(name) => localStorage.getItem(name)", name))


def due(days: int) -> str:
    return str(TODAY + datetime.timedelta(days=days))


def test_five_of_the_opened_chapters_and_no_more(cards, live_site):
    page = open_cards(cards("masks", "heads"), live_site)
    ids = [card["id"] for name in ("masks", "heads") for card in CARDS[name]][:5]
    for n in range(5):
        assert (
            page.locator(".cards-count").inner_text().startswith(f"Card {n + 1} of 5")
        )
        assert answer(page, n % 2 == 0)
    expect(page.locator(".cards-done")).to_have_text("Done for today: 5 of 5.")
    assert kept(page, "tformer cards") == {
        id_: {"box": 1, "due": due(1)} for id_ in ids
    }
    page.reload()
    expect(ready(page).locator(".cards-done")).to_be_visible()
    assert not page.locator(".cards-card").is_visible()


def test_what_is_due_comes_first_and_moves_on_or_back(cards, live_site):
    ids = [card["id"] for card in CARDS["masks"]]
    old = {
        ids[3]: {"box": 3, "due": due(-2)},
        ids[2]: {"box": 5, "due": due(0)},
        ids[1]: {"box": 2, "due": due(1)},
    }
    page = open_cards(cards("masks", kept={"tformer cards": old}), live_site)
    told = page.locator(".cards-count")
    assert told.inner_text().endswith("box 3")
    answer(page, True)
    assert told.inner_text().endswith("box 5")
    answer(page, True)
    assert told.inner_text().endswith("new")
    answer(page, False)
    now = kept(page, "tformer cards")
    assert now[ids[3]] == {"box": 4, "due": due(DAYS[3])}
    assert now[ids[2]] == {"box": 5, "due": due(DAYS[4])}
    assert now[ids[0]] == {"box": 1, "due": due(1)}
    assert now[ids[1]] == old[ids[1]]
    expect(page.locator("live-cards > .live-said")).to_contain_text(f"on {due(1)}")


def test_a_known_card_goes_back_to_the_first_box(cards, live_site):
    first = CARDS["masks"][0]["id"]
    old = {"tformer cards": {first: {"box": 4, "due": due(0)}}}
    page = open_cards(cards("masks", kept=old), live_site)
    answer(page, False)
    assert kept(page, "tformer cards")[first] == {"box": 1, "due": due(1)}


def test_the_next_day_has_new_cards(cards, live_site):
    page = open_cards(cards("masks", "heads"), live_site)
    first = [answer(page, True) for _ in range(5)]
    page.clock.set_fixed_time(f"{TODAY + datetime.timedelta(days=1)}T09:00:00")
    page.reload()
    ready(page)
    assert page.locator(".cards-count").inner_text().endswith("box 1")
    assert answer(page, True) == first[0]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "text", ["", "null", "[1", '"x"', '{"opened": 3}', '{"opened": ["nowhere", 4]}']
)
def test_whatever_is_kept_the_page_stands(cards, live_site, text):
    page = cards()
    for name in ("tformer reading", "tformer cards", "tformer hand"):
        page.evaluate("([n, t]) => localStorage.setItem(n, t)", [name, text])
    open_cards(page, live_site)
    assert "no chapter in this browser yet" in page.inner_text("live-cards")
    answer(page, True)
    assert page.locator(".cards-count").inner_text().startswith("Card 2 of ")


def test_without_storage_cards_last_as_long_as_the_page(cards, live_site):
    page = open_cards(cards(script=NO_STORAGE), live_site)
    assert "This browser keeps nothing" in page.inner_text("live-cards")
    for _ in CARDS["attention"]:
        answer(page, True)
    expect(page.locator(".cards-done")).to_be_visible()


def test_all_is_told_and_can_be_forgotten(cards, live_site):
    more = {
        "ticked /x/": ["a"],
        "boxes /x/": 3,
        "tformer progress": {"rotary": "right"},
    }
    page = open_cards(cards("masks", kept={**more, "theirs": 1}), live_site)
    answer(page, True)
    told = page.locator("live-cards .live-note").last
    for part in ("where you stopped", "boxes of your cards", "solved", "ticked"):
        expect(told).to_contain_text(part)
    page.get_by_role("button", name="Forget all of it").click()
    expect(told).to_have_text("Kept in this browser, and sent nowhere: nothing.")
    assert page.evaluate("Object.keys(localStorage)") == ["theirs"]
    assert page.get_by_role("button", name="Forget all of it").is_disabled()


def test_links_of_an_answer_lead_where_they_led(cards, live_site):
    cards_ = [
        {"id": "masks:1", "question": "Q", "answer": '<a href="../heads/#x">h</a>'}
    ]
    live_site.changed["/live/questions/masks.json"] = json.dumps(cards_)
    page = open_cards(cards("masks"), live_site)
    page.get_by_text("Show the answer").click()
    link = page.get_by_role("link", name="h", exact=True)
    assert link.evaluate("x => x.pathname + x.hash") == "/chapters/heads/#x"


def test_the_page_names_the_days_that_the_code_has():
    text = (DOCS / "cards.md").read_text("utf-8")
    (days,) = re.findall(r"come again after ([\d, and\s]+) days", text)
    code = (DOCS / "live/pieces/cards/boxes.js").read_text("utf-8")
    (listed,) = re.findall(r"DAYS = \[(.*?)\]", code)
    assert re.findall(r"\d+", days) == re.findall(r"\d+", listed)
    assert [int(x) for x in re.findall(r"\d+", days)] == DAYS


def first_five(page: Page) -> None:
    """Without a chapter that was opened: those of the first chapter, and a box each."""
    page.evaluate("localStorage.clear()")
    page.reload()
    try:
        told = ready(page).locator(".cards-count")
        for n, card in enumerate(CARDS["attention"]):
            expect(told).to_contain_text(f"Card {n + 1} of {len(CARDS['attention'])}")
            words = unescape(re.sub("<[^>]+>", "", card["question"]))
            assert answer(page, True) == words
        tomorrow = str(datetime.date.today() + datetime.timedelta(days=1))
        places = kept(page, "tformer cards")
        assert [*places.values()] == [{"box": 1, "due": tomorrow}] * len(places)
    finally:
        page.evaluate("localStorage.clear()")


def test_without_an_opened_chapter_the_first_one_asks(live_page):
    first_five(ready(live_page(FIGURE)))


test_a_planted_fault_is_seen = planted(
    PIECE,
    first_five,
    ("pieces/cards/boxes.js", "(place?.box ?? 0) + 1", "(place?.box ?? 0) + 2"),
    ("pieces/cards/boxes.js", "later(day, DAYS[box - 1])", "later(day, DAYS[box])"),
    ("pieces/cards.js", "done: done + 1", "done: done + 2"),
)


def test_nobody_is_shut_out(live_page):
    audit(live_page, PIECE, lambda page: page.get_by_text("Show the answer").click())
