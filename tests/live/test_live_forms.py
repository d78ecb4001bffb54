"""What the training had not is said to be so: by the forms that drew the training."""

import datetime

import pytest
from playwright.sync_api import Page

from live_driving import ready
from live_explorer import MODEL, settled, type_text, written_by
from tformer.tasks.dates import date_examples, harder_examples, split_days

STRANGE = """async (texts) => {
  const { loadForms, strange } = await import("/live/explorer/forms.js")
  const known = await loadForms()
  return texts.map((text) => strange(text, known))
}"""
DAYS = [day for day in split_days()["test"][:40] if day.day <= 12]
ORDINALS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


def _ordinal(day: datetime.date) -> str:
    return f"{day:%B} {day.day}{ORDINALS.get(day.day, 'th')}, {day.year}"


# What people type first, and the training never had.
TYPED = {
    "d.m.yyyy": lambda day: f"{day.day}.{day.month}.{day.year}",
    "yyyy-mm-dd": lambda day: day.isoformat(),
    "mm/dd/yyyy": lambda day: f"{day:%m/%d/%Y}",
    "ordinal": _ordinal,
    "two-digit year": lambda day: f"{day.day} {day:%B} {day:%y}",
}


@pytest.fixture
def strange(live_page):
    """What of each text is strange, as the page says."""
    page: Page = live_page("<p>No piece.</p>")
    return lambda texts: page.evaluate(STRANGE, texts)


def test_all_that_training_draws_is_known(strange) -> None:
    texts = [example.text for example in date_examples(3000, seed=5, split="test")]
    told = strange(texts)
    assert not [text for text, what in zip(texts, told, strict=True) if what]


def test_what_it_never_drew_is_strange(strange) -> None:
    for split, expected in (("new-formats", "form"), ("new-years", "year")):
        texts = [x.text for x in harder_examples(split, 500, seed=5)]
        assert set(strange(texts)) == {expected}, split
    for write in TYPED.values():
        assert set(strange([write(day) for day in DAYS])) == {"form"}
    days = ["31 février 1979", "0 mai 1979", "1979年13月1日", "30 February 2000"]
    assert strange(days)[0] == "day"
    assert "" not in strange([*days, "", " jeudi 3 mai 1979", "jeudi 3 mai 1979 "])


def test_the_model_is_right_where_nothing_is_said_and_not_where_it_is() -> None:
    known = date_examples(200, seed=6, split="test")
    assert sum(written_by(x.text) == x.iso for x in known) >= 198
    for write in TYPED.values():
        right = sum(written_by(write(day)) == day.isoformat() for day in DAYS)
        assert right <= len(DAYS) / 2, write


def test_it_is_told_below_the_field(live_page) -> None:
    page = settled(ready(live_page(MODEL)))
    note = page.locator(".entry-note")
    for text, told in (
        ("22.11.2026", "was not trained on this form"),
        ("July 20th, 1969", "was not trained on this form"),
        ("3 mai 1789", "trained on the years 1900 to 2099"),
        ("31 February 2001", "No calendar has this day"),
        ("22. November 2026", ""),
        ("AUGUST 4, 2024", ""),
    ):
        type_text(page, text)
        assert told in note.inner_text(), text
        assert note.is_visible() == bool(told), text


def test_without_the_list_nothing_is_said(live_page, live_site) -> None:
    live_site.changed["/live/forms.json"] = None
    page = settled(ready(live_page(MODEL, fresh=True, expected=("404",))))
    type_text(page, "22.11.2026")
    assert page.locator(".entry-note").is_hidden()
