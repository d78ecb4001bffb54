"""The dates task: nothing ambiguous, and nothing of the test in the training."""

import datetime
import unicodedata
from collections import Counter, defaultdict

import pytest

from tformer.tasks import SPLITS, TASKS
from tformer.tasks.dates import (
    FIRST_DAY,
    HARDER_SPLITS,
    HELD_OUT,
    LAST_DAY,
    LOCALES,
    DatesTask,
    date_examples,
    date_patterns,
    date_vocabulary,
    harder_examples,
    new_formats,
    split_days,
    write_date,
)

TASK = TASKS["dates"]
TEST_DAYS = {day.isoformat() for day in split_days()["test"]}


def test_no_day_of_the_test_is_in_any_other_split():
    days = split_days()
    assert tuple(sorted(days)) == tuple(sorted(SPLITS))
    assert len(days["test"]) == len(days["validation"]) == HELD_OUT == 2000
    everything = [day for split in SPLITS for day in days[split]]
    assert len(everything) == len(set(everything)) == 73_049
    assert (min(everything), max(everything)) == (FIRST_DAY, LAST_DAY)


def test_every_day_of_a_split_comes_up_and_no_other():
    for split in ("validation", "test"):
        drawn = {e.iso for e in date_examples(3000, seed=5, split=split)}
        assert drawn == {day.isoformat() for day in split_days()[split]}
    training = {day.isoformat() for day in split_days()["train"]}
    assert {e.iso for e in date_examples(3000, seed=5)} < training


def test_the_split_mixes_the_centuries():
    years = Counter(day.year // 50 for day in split_days()["test"])
    assert len(years) == 4
    assert min(years.values()) > 400


def test_known_dates():
    day = datetime.date(1979, 5, 3)
    written = {
        ("EEEE d MMMM y", "fr"): "jeudi 3 mai 1979",
        ("MMM d, y", "en_US"): "May 3, 1979",
        ("y. MMMM d.", "hu"): "1979. május 3.",
        ("d MMMM y", "el"): "3 Μαΐου 1979",
        ("y年M月d日EEEE", "ja"): "1979年5月3日木曜日",
        ("d MMMM y\u202f'г'.", "ru"): "3 мая 1979 г.",
    }
    for (pattern, locale), text in written.items():
        assert pattern in date_patterns(locale)
        assert write_date(day, pattern, locale) == text


def test_there_are_24_locales_and_each_comes_up_as_often():
    assert len(set(LOCALES)) == len(LOCALES) == 24
    counts = Counter(e.locale for e in date_examples(12_000, seed=1))
    assert set(counts) == set(LOCALES)
    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


def test_every_text_can_be_read_in_one_way_only():
    """Days of every month, in every locale and pattern, whatever the case."""
    readings = defaultdict(set)
    for month in range(1, 13):
        for day in (1, 2, 3, 9, 10, 11, 12, 20, 28):
            date = datetime.date(2004, month, day)
            for locale in LOCALES:
                for pattern in date_patterns(locale):
                    text = write_date(date, pattern, locale)
                    readings[text.casefold()].add(date)
    assert len(readings) > 5000
    assert [text for text, dates in readings.items() if len(dates) > 1] == []


def test_no_text_is_numbers_alone():
    for locale in LOCALES:
        assert 2 <= len(date_patterns(locale)) <= 5
        for pattern in date_patterns(locale):
            without_weekday = pattern.replace("E", "").replace("c", "")
            text = write_date(datetime.date(2003, 8, 4), without_weekday, locale)
            assert any(c.isalpha() for c in text), (locale, pattern)


def test_texts_are_composed_and_have_plain_spaces():
    texts = [e.text for e in date_examples(5000, seed=2)]
    for text in texts:
        assert unicodedata.normalize("NFC", text) == text
        assert not {"\u202f", "\xa0", "\u2009"} & set(text)
        assert text == text.strip()
    assert max(map(len, texts)) < 48


def test_some_texts_are_in_lower_and_some_in_upper_case():
    examples = date_examples(4000, seed=3, locales=["de"])  # months begin upper case
    lower = sum(e.text.islower() for e in examples) / len(examples)
    upper = sum(e.text.isupper() for e in examples) / len(examples)
    assert lower == pytest.approx(0.15, abs=0.02)
    assert upper == pytest.approx(0.10, abs=0.02)


def test_the_vocabulary_has_every_character_that_comes_up():
    characters = set(TASK.vocabulary().characters)
    examples = date_examples(12_000, seed=0)
    drawn = set().union(*(example.text + example.iso for example in examples))
    assert drawn <= characters
    assert len(characters - drawn) < 5  # and next to nothing that never does
    assert set(date_vocabulary(["en_GB"]).characters) < characters


@pytest.mark.parametrize("split", HARDER_SPLITS)
def test_harder_splits_have_every_locale_and_no_new_character(split):
    examples = TASK.examples(split, 1500, 0)
    assert {example.locale for example in examples} == set(LOCALES)
    vocabulary = TASK.vocabulary()
    for example in examples:
        vocabulary.encode(example.text)  # raises where one is not
        datetime.date.fromisoformat(example.iso)
    assert TASK.examples(split, 1500, 0) == examples
    assert TASK.examples(split, 1500, 1) != examples


def own_texts(iso, locale):
    day = datetime.date.fromisoformat(iso)
    return {write_date(day, pattern, locale) for pattern in date_patterns(locale)}


def test_years_are_new_and_formats_are_not():
    examples = TASK.examples("new-years", 1500, 0)
    years = [int(example.iso[:4]) for example in examples]
    assert min(years) < 1705 < 1895 < max(y for y in years if y < 2000)
    assert max(years) > 2295
    assert not any(1900 <= year <= 2099 for year in years)
    for text, iso, locale in examples[:200]:
        assert text in own_texts(iso, locale)


def test_formats_are_new_and_days_are_of_the_test():
    for text, iso, locale in TASK.examples("new-formats", 600, 0):
        assert iso in TEST_DAYS
        assert text not in own_texts(iso, locale)
    assert new_formats("EEEE 'den' d. MMMM y") == ("y MMMM d", "d-MMMM-y", "MMMM d y")
    assert new_formats("y年M月d日(E)")[1] == "d日-M月-y年"


def test_long_texts_are_longer_than_any_of_the_training():
    longest = max(len(e.text) for e in date_examples(20_000, seed=0))
    for text, iso, _ in TASK.examples("long-texts", 600, 0):
        assert len(text) > TASK.max_source_len >= longest
        assert iso in TEST_DAYS


def test_a_locale_alone():
    examples = TASK.examples("locale-el", 40, 0)
    assert {example.locale for example in examples} == {"el"}
    assert examples == date_examples(40, seed=0, split="test", locales=["el"])


def test_held_out_locales_are_in_the_test_alone():
    task = TASKS["dates-new-locales"]
    assert task.held_out == ("da", "pt", "uk", "ko")
    for split in ("train", "validation", *HARDER_SPLITS):
        locales = {example.locale for example in task.examples(split, 900, 0)}
        assert locales == set(LOCALES) - set(task.held_out)
    assert {e.locale for e in task.examples("test", 200, 0)} == set(task.held_out)
    # One vocabulary for both tasks, so that models of one size can be compared.
    assert len(task.vocabulary()) == len(TASK.vocabulary())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: date_examples(5, seed=0, locales=[]), "at least one"),
        (lambda: date_examples(5, seed=0, locales=["xx"]), r"locale \('xx'\)"),
        (lambda: TASK.pairs("locale-xx", 3, 0), r"split \('locale-xx'\) must be one"),
        (lambda: TASK.pairs("new-years", 0, 0), r"count \(0\) must be"),
        (
            lambda: harder_examples("old", 1, seed=0),
            r"split \('old'\) must be one of new-years",
        ),
        (lambda: DatesTask(held_out=["xx"]), r"held_out \(\('xx',\)\) must be some"),
        (lambda: DatesTask(locales=["fr"], held_out=["fr"]), "and not all"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
