"""What a browser remembers of a reader, and forgets at a click; where nothing can be
stored, nothing is remembered."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from engine.site.lists import chapters
from engine.site.questions import questions
from navigation import CHAPTERS, PROJECT
from test_site_browser import opened

MASKS = "chapters/masks/"
SECTION = "change-the-future"
READING = "localStorage.getItem('tformer reading')"
NO_STORAGE = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("not allowed", "SecurityError") } })"""


def read_to(tab: Page, home: str, page: str, section: str) -> None:
    """Open a chapter, and scroll to a section as a reader does."""
    tab.goto(home + page, wait_until="networkidle")
    tab.evaluate("(id) => document.getElementById(id).scrollIntoView()", section)
    tab.wait_for_function(f"() => {READING}?.includes('\"{section}\"')")


def test_the_home_leads_on_where_a_reader_stopped(browser: Browser, home: str) -> None:
    with opened(browser, home) as (tab, wrong):
        tab.wait_for_load_state("networkidle")
        assert not tab.locator(".home-memory").count()
        read_to(tab, home, MASKS, SECTION)
        tab.goto(home, wait_until="networkidle")
        told = tab.locator(".home-memory")
        expect(told).to_contain_text(f"1 of {len(chapters(PROJECT))} chapters opened")
        first = tab.locator(".home-actions a").first
        expect(first).to_have_text("Continue reading")
        first.click()
        tab.wait_for_url(f"**/{MASKS}#{SECTION}", wait_until="networkidle")
        tab.goto(home, wait_until="networkidle")
        told.get_by_role("link").click()
        tab.wait_for_url(f"**/{MASKS}#{SECTION}", wait_until="networkidle")
        tab.goto(home, wait_until="networkidle")
        tab.get_by_role("button", name="Forget this").click()
        assert not told.count()
        expect(first).to_have_text("Start reading")
        assert tab.evaluate(READING) is None
        tab.reload(wait_until="networkidle")
        assert not told.count()
        assert not wrong, "\n".join(wrong)


def test_a_chapter_that_is_opened_again_keeps_its_place(
    browser: Browser, home: str
) -> None:
    with opened(browser, home) as (tab, _):
        read_to(tab, home, MASKS, SECTION)
        tab.goto(home + MASKS, wait_until="networkidle")
        assert json.loads(tab.evaluate(READING))["last"]["id"] == SECTION
        tab.goto(home + "chapters/attention/", wait_until="networkidle")
        kept = json.loads(tab.evaluate(READING))
        assert kept["opened"] == ["masks", "attention"]
        assert kept["last"]["path"].endswith("chapters/attention/")


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1",
        "null",
        '{"opened": 3}',
        '{"last": {"path": "//evil.example/", "title": "x"}}',
        '{"last": {"path": "javascript:alert(1)", "title": "x"}}',
    ],
)
def test_whatever_is_stored_the_home_stands(
    browser: Browser, home: str, text: str
) -> None:
    with opened(browser, home) as (tab, wrong):
        tab.evaluate("text => localStorage.setItem('tformer reading', text)", text)
        tab.reload(wait_until="networkidle")
        wrong.clear()  # the reload broke off what the first visit asked for
        expect(tab.locator(".home-actions a").first).to_have_text("Start reading")
        assert not tab.locator(".home-memory a").count()
        assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_without_storage_nothing_is_remembered(browser: Browser, home: str) -> None:
    with opened(browser, home) as (tab, _):
        tab.add_init_script(NO_STORAGE)
        tab.goto(home + MASKS, wait_until="networkidle")
        tab.mouse.wheel(0, 2000)
        tab.goto(home, wait_until="networkidle")
        assert not tab.locator(".home-memory").count()
        tab.goto(home + "cards/")
        expect(tab.locator("live-cards")).to_contain_text("This browser keeps nothing")


def test_cards_are_the_questions_of_what_was_opened(
    browser: Browser, home: str
) -> None:
    with opened(browser, home, MASKS) as (tab, wrong):
        tab.wait_for_load_state("networkidle")
        tab.goto(home + "cards/", wait_until="networkidle")
        section = tab.locator(".cards-count a")
        assert (section.get_attribute("href") or "").endswith(
            f"{MASKS}#interview-questions"
        )
        tab.get_by_text("Show the answer").click()
        assert tab.locator(".cards-answer").inner_text()
        assert not wrong, "\n".join(wrong)


def test_every_interview_question_is_a_card(site: Path) -> None:
    """As many as the Markdown has, in the order of the book, each answered."""
    listed = json.loads((site / "live/questions/index.json").read_text("utf-8"))
    counts = {}
    for chapter in CHAPTERS:
        text = (PROJECT.docs / chapter).read_text("utf-8")
        section = text.partition("\n## Interview questions\n")[2].partition("\n## ")[0]
        counts[Path(chapter).stem] = section.count("\n??? question ")
    assert [x["name"] for x in listed] == [name for name, n in counts.items() if n]
    seen = set()
    for name, count in counts.items():
        if not count:
            continue
        file = site / f"live/questions/{name}.json"
        cards = json.loads(file.read_text("utf-8"))
        assert len(cards) == count, name
        for card in cards:
            assert card["answer"], card
            assert "<details" not in card["answer"]  # it would end the card too early
            assert "style=" not in card["question"] + card["answer"]
            assert 'class="arithmatex">\\' not in card["answer"]
            seen.add(card["id"])
    assert len(seen) == sum(counts.values())


def test_questions_of_a_page() -> None:
    fold = '<details class="{}">\n<summary>{}</summary>\n{}\n</details>\n'
    html = fold.format("question", "not here", "<p>x</p>")
    html += '<h2 id="interview-questions">Interview questions</h2>\n'
    html += fold.format("question", "Why <em>a</em> &amp; b?", "<p>1</p>")
    html += fold.format("note", "no question", "<p>2</p>")
    html += '<h2 id="checklist">Checklist</h2>' + fold.format("question", "nor", "x")
    (card,) = questions("masks", html)
    assert card["question"] == "Why <em>a</em> &amp; b?"
    assert card["answer"] == "<p>1</p>"
    (moved,) = questions("masks", html.replace("<em>a</em>", "a\n"))
    assert moved["id"] == card["id"]  # the words are the same
    assert questions("heads", html)[0]["id"] != card["id"]
    assert questions("heads", "<p>nothing</p>") == []
