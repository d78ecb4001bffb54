"""Dates as typed: what people type first is drawn, and reads in one way only."""

import datetime
import re
from collections import Counter, defaultdict

import pytest

from tformer.tasks import TASKS
from tformer.tasks.date_forms import KINDS, typed_forms
from tformer.tasks.dates import HARDER_SPLITS, LOCALES, split_days, write_date
from tformer.tasks.known_dates import known_dates, two_digit_year, unlike_training
from tformer.tasks.typed_dates import typed_examples

TASK = TASKS["dates-as-typed"]
TEST_DAYS = {day.isoformat() for day in split_days()["test"]}
# What a visitor typed who tried the site, and what it means.
TYPED = {
    "22.11.2026": "2026-11-22",
    "2026-11-22": "2026-11-22",
    "11/22/2026": "2026-11-22",
    "22/11/2026": "2026-11-22",
    "04/05/2026": "2026-05-04",  # slashes: day first, where both can be
    "4.5.26": "2026-05-04",
    "22.11.69": "1969-11-22",
    "2026. 11. 22.": "2026-11-22",
    "26. 11. 22.": "2026-11-22",  # as Korean writes two digits
    "2026/11/22": "2026-11-22",
    "July 20th, 1969": "1969-07-20",
    "20th july 1969": "1969-07-20",
    "the 20th of July 1969": "1969-07-20",
    "1er mai 1979": "1979-05-01",
    "1º DE MAIO DE 1979": "1979-05-01",
    "3 mayo 1979": "1979-05-03",
}


NUMBERS = ("numbers", "two-digit-years")


def writes(form, day):
    return day.day in form.days and (form.years is None or day.year in form.years)


def written(iso: str, kinds=KINDS) -> set[str]:
    """All texts of a day, in every locale, in lower case."""
    day = datetime.date.fromisoformat(iso)
    return {
        write_date(day, form.pattern, locale).lower()
        for locale in LOCALES
        for form in typed_forms(locale)
        if form.kind in kinds and writes(form, day)
    }


@pytest.mark.parametrize(("text", "iso"), TYPED.items())
def test_what_people_type_is_drawn(text, iso):
    assert text.lower() in written(iso)
    assert unlike_training(text) == ""


def test_every_text_can_be_read_in_one_way_only():
    """Numbers of many days and years, and words and ordinals of some."""
    forms = {}
    for locale in LOCALES:
        forms |= {form.pattern: form for form in typed_forms(locale)}
    numbers = [form for form in forms.values() if form.kind in NUMBERS]
    assert 20 < len(numbers) < 40
    found = defaultdict(set)
    days = [datetime.date(2001, 1, 1) + datetime.timedelta(i) for i in range(0, 365, 3)]
    for year in (1904, 1969, 2004, 2011, 2029, 2068):
        for day in (day.replace(year=year) for day in days):
            for form in numbers:
                if writes(form, day):
                    found[write_date(day, form.pattern, "en")].add(day)
    for month in range(1, 13):
        for number in (1, 2, 3, 11, 12, 20):
            day = f"2004-{month:02}-{number:02}"
            for text in written(day, ("words", "bare-words", "ordinals")):
                found[text].add(day)
    assert len(found) > 20_000
    assert [text for text, days in found.items() if len(days) > 1] == []


def test_slashes_put_the_day_first_where_most_locales_do():
    orders = Counter()
    for locale in LOCALES:
        forms = [form for form in typed_forms(locale) if form.kind == "numbers"]
        (order,) = {
            re.sub(r"(.)\1*", r"\1", f.pattern) for f in forms if "/" in f.pattern
        } or {""}
        orders[order] += 1
    assert orders["d/M/y"] == 8
    assert orders["M/d/y"] == 1
    first = [
        f
        for f in typed_forms("en_US")
        if f.pattern.startswith("M") and "/" in f.pattern
    ]
    assert {day for form in first for day in form.days} == set(range(13, 32))


def test_two_digits_mean_a_year_where_the_locale_writes_them():
    having = {x for x in LOCALES for f in typed_forms(x) if f.kind == "two-digit-years"}
    assert {"de", "en_US", "it", "ko"} < having
    assert having.isdisjoint({"en_GB", "fr", "sv", "ja"})
    years = {two_digit_year(digits) for digits in range(100)}
    assert (min(years), max(years), len(years)) == (1969, 2068, 100)
    assert (two_digit_year(69), two_digit_year(68)) == (1969, 2068)
    for text, iso, _ in TASK.examples("two-digit-years", 300, 0):
        assert not re.search(r"\d{4}", text), text
        assert 1969 <= int(iso[:4]) <= 2068


def test_ordinals_are_those_of_their_days():
    texts = " ".join(text for text, _, _ in TASK.examples("ordinals", 1500, 0)).lower()
    found = set(re.findall(r"\b(\d\d?)(st|nd|rd|th|er|º)", texts))
    assert {("1", "er"), ("1", "º"), ("1", "st"), ("11", "th"), ("22", "nd")} <= found
    assert len({number for number, mark in found if mark not in ("er", "º")}) == 31
    assert len(found) == 33


@pytest.mark.parametrize("split", KINDS)
def test_a_kind_is_drawn_from_days_of_the_test_alone(split):
    examples = TASK.examples(split, 400, 0)
    assert {iso for _, iso, _ in examples} <= TEST_DAYS
    assert any(char.isdigit() for text, _, _ in examples for char in text)
    numbers = [not any(map(str.isalpha, text)) for text, _, _ in examples]
    assert all(numbers) == any(numbers) == (split in NUMBERS)


@pytest.fixture(scope="module")
def examples():
    return typed_examples(4000, seed=1)


def test_kinds_and_orders_come_up_as_often_as_is_said(examples):
    assert {example.locale for example in examples} == set(LOCALES)
    words = sum(any(map(str.isalpha, text)) for text, _, _ in examples)
    assert 0.55 < words / len(examples) < 0.65
    signs = Counter(re.sub(r"\d+", "", text) for text, _, _ in examples)
    numbers = {x: n for x, n in signs.items() if not any(map(str.isalpha, x))}
    assert set(numbers) == {"..", "//", "--", ". . ", ". . ."}
    month_first = [
        text for text, _, _ in examples if re.match(r"\d\d?/(1[3-9]|[23])", text)
    ]
    assert 0.02 < len(month_first) / len(examples) < 0.06


def test_the_vocabulary_has_every_character_that_comes_up(examples):
    characters = set(TASK.vocabulary().characters)
    drawn = set().union(*(example.text for example in examples))
    assert drawn <= characters
    assert characters - set(TASKS["dates"].vocabulary().characters) == {"/", "º"}


def test_the_rule_knows_what_is_drawn_and_nothing_else():
    assert 400 < len(known_dates()) < 700
    for text, _, _ in TASK.examples("test", 1500, 4):
        assert unlike_training(text) == "", text
    for split, said in zip(HARDER_SPLITS, ("year", "form", "form"), strict=True):
        examples = TASK.examples(split, 300, 4)
        assert len(examples) == 300
        assert {unlike_training(text) for text, _, _ in examples} == {said}
    for text in ("30.02.2000", "31 février 1979", "31/31/2026", "29.2.2001"):
        assert unlike_training(text) == "day"
    for text in ("July 20st, 1969", "22-11-26", "2er mai 1979", " 3 mai 1979", ""):
        assert unlike_training(text) == "form"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: typed_examples(0, seed=0), r"count \(0\) must be"),
        (lambda: typed_examples(1, seed=0, split="old"), r"split \('old'\) must be"),
        (lambda: typed_examples(1, seed=0, kinds=["x"]), r"kind \('x'\) must be"),
        (lambda: typed_examples(1, seed=0, locales=["xx"]), r"locale \('xx'\)"),
        (lambda: typed_examples(1, seed=0, locales=[]), "have no forms of these"),
        (
            lambda: typed_examples(1, seed=0, locales=["de"], kinds=["ordinals"]),
            "have no forms of these kinds",
        ),
        (
            lambda: (
                TASK.examples("new-years", 1, 0)
                and typed_examples(
                    1, seed=0, split="new-years", kinds=["two-digit-years"]
                )
            ),
            "have no forms of these kinds",
        ),
        (lambda: TASK.pairs("times", 1, 0), r"split \('times'\) must be one"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
