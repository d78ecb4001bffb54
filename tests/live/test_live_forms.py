"""What the training had not is said to be so: by the forms that drew the training."""

import datetime

import pytest
from playwright.sync_api import Page

from live_driving import ready
from live_explorer import MODEL, settled, type_text, written_by
from tformer.tasks import TASKS
from tformer.tasks.dates import HARDER_SPLITS, split_days
from tformer.tasks.known_dates import unlike_training

TASK = TASKS["dates-as-typed"]
STRANGE = """async (texts) => {
  const { loadForms, strange } = await import("/live/explorer/forms.js")
  const known = await loadForms()
  return texts.map((text) => strange(text, known))
}"""
DAYS = [day for day in split_days()["test"][:40] if day.year in range(1969, 2069)]
NAMES = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


def _ordinal(day: datetime.date) -> str:
    return f"{day:%B} {day.day}{NAMES.get(day.day, 'th')}, {day.year}"


# What people type first. The last two the training never has.
TYPED = {
    "d.m.yyyy": lambda day: f"{day.day}.{day.month}.{day.year}",
    "dd/mm/yyyy": lambda day: f"{day:%d/%m/%Y}",
    "yyyy-mm-dd": lambda day: day.isoformat(),
    "dd.mm.yy": lambda day: f"{day:%d.%m.%y}",
    "ordinal": _ordinal,
    "two digits after a word": lambda day: f"{day.day} {day:%B} {day:%y}",
    "digits alone": lambda day: f"{day:%Y%m%d}",
}
NEVER = [*TYPED][-2:]


@pytest.fixture
def strange(live_page):
    """What of each text is strange, as the page says."""
    page: Page = live_page("<p>No piece.</p>")
    return lambda texts: page.evaluate(STRANGE, texts)


def test_the_page_says_what_the_package_says(strange) -> None:
    texts = [text for text, _, _ in TASK.examples("test", 2000, 5)]
    assert set(strange(texts)) == {""}
    for split in HARDER_SPLITS:
        texts += [text for text, _, _ in TASK.examples(split, 300, 5)]
    for write in TYPED.values():
        texts += [write(day) for day in DAYS]
    texts += ["31 février 1979", "0 mai 1979", "1979年13月1日", "30.02.2000", "29.2.69"]
    texts += ["11/22/2026", "31/31/2026", "2er mai 1979", "July 20st, 1969", "1.1.2100"]
    texts += ["", " jeudi 3 mai 1979", "jeudi 3 mai 1979 ", "00.11.2026", "3/13/68"]
    texts += ["01.00.2026", "31.02.1800", "01.01.0000"]
    assert strange(texts) == [unlike_training(text) for text in texts]


@pytest.mark.nightly
def test_the_model_is_right_where_nothing_is_said_and_not_where_it_is() -> None:
    known = TASK.examples("test", 200, 6)
    assert sum(written_by(x.text) == x.iso for x in known) >= 198
    for name, write in TYPED.items():
        right = sum(written_by(write(day)) == day.isoformat() for day in DAYS)
        said = {unlike_training(write(day)) for day in DAYS}
        assert said == {"form" if name in NEVER else ""}, name
        # Of these it may read some; what it does not read is never left unsaid.
        assert right >= len(DAYS) - 1 or name in NEVER, name
    for split in HARDER_SPLITS:
        asked = TASK.examples(split, 100, 6)
        assert sum(written_by(x.text) == x.iso for x in asked) <= 95, split


@pytest.mark.nightly
def test_it_is_told_below_the_field(live_page) -> None:
    page = settled(ready(live_page(MODEL)))
    note = page.locator(".entry-note")
    for text, told in (
        ("22 November 26", "was not trained on this form"),
        ("3 mai 1789", "trained on the years 1900 to 2099"),
        ("31 February 2001", "No calendar has this day"),
        ("22.11.2026", ""),
        ("11/22/2026", ""),
        ("July 20th, 1969", ""),
        ("AUGUST 4, 2024", ""),
    ):
        type_text(page, text)
        assert told in note.inner_text(), text
        assert note.is_visible() == bool(told), text


def test_without_the_list_nothing_is_said(live_page, live_site) -> None:
    live_site.changed["/live/forms.json"] = None
    page = settled(ready(live_page(MODEL, fresh=True, expected=("404",))))
    type_text(page, "22 November 26")
    assert page.locator(".entry-note").is_hidden()
