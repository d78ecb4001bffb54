"""The dates task: nothing ambiguous, and nothing of the test in the training."""

import datetime
import unicodedata
from collections import Counter, defaultdict

import pytest

from tformer.tasks.dates import (
    FIRST_DAY,
    HELD_OUT,
    LAST_DAY,
    LOCALES,
    date_examples,
    date_patterns,
    date_vocabulary,
    split_days,
    write_date,
)

SPLITS = ("train", "validation", "test")


def test_no_day_of_the_test_is_in_any_other_split():
    days = split_days()
    assert tuple(sorted(days)) == tuple(sorted(SPLITS))
    assert len(days["test"]) == len(days["validation"]) == HELD_OUT == 2000
    everything = [day for split in SPLITS for day in days[split]]
    assert len(everything) == len(set(everything)) == 73_049
    assert (min(everything), max(everything)) == (FIRST_DAY, LAST_DAY)


def test_no_held_out_date_is_written_in_training_in_any_language():
    examples = {split: date_examples(3000, seed=5, split=split) for split in SPLITS}
    for split in SPLITS:
        days = {day.isoformat() for day in split_days()[split]}
        assert {e.iso for e in examples[split]} <= days
    held_out = {e.iso for e in examples["test"]} | {
        e.iso for e in examples["validation"]
    }
    assert len(held_out) == 2 * HELD_OUT  # each held-out day is asked for
    assert held_out.isdisjoint(e.iso for e in date_examples(75_000, seed=0))


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


def test_the_same_seed_gives_the_same_examples():
    first = date_examples(200, seed=7)
    assert first == date_examples(200, seed=7)
    assert first[:50] == date_examples(50, seed=7)
    assert first != date_examples(200, seed=8)
    assert {e.iso for e in first} != {e.iso for e in date_examples(200, seed=8)}


def test_locales_can_be_chosen():
    assert {e.locale for e in date_examples(50, seed=0, locales=["it"])} == {"it"}


def test_the_vocabulary_has_every_character_that_comes_up():
    characters = set(date_vocabulary().characters)
    drawn = set()
    for split in SPLITS:
        for example in date_examples(4000, seed=0, split=split):
            drawn |= set(example.text + example.iso)
    assert drawn <= characters
    assert len(characters - drawn) < 5  # and next to nothing that never does
    assert set(date_vocabulary(["en_GB"]).characters) < characters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, r"count \(0\)"),
        ({"split": "dev"}, r"split \('dev'\) must be one of .*train"),
        ({"locales": []}, "at least one"),
        ({"locales": ["xx"]}, r"locale \('xx'\)"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        date_examples(**{"count": 5, "seed": 0, **arguments})
