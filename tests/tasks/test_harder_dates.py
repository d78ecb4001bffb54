"""Splits that have one thing more than the training has, and only that one."""

import datetime

import pytest

from tformer.tasks import TASKS
from tformer.tasks.dates import (
    LOCALES,
    DatesTask,
    date_examples,
    date_patterns,
    split_days,
    write_date,
)
from tformer.tasks.harder_dates import HARDER_SPLITS, harder_examples, new_formats

TASK = TASKS["dates"]
PATTERNS = {(name, p) for name in LOCALES for p in date_patterns(name)}


@pytest.fixture(scope="module", params=HARDER_SPLITS)
def split(request):
    return request.param


def test_every_locale_comes_up_and_every_character_is_known(split):
    examples = TASK.examples(split, 1500, 0)
    assert {example.locale for example in examples} == set(LOCALES)
    vocabulary = TASK.vocabulary()
    for example in examples:
        vocabulary.encode(example.text)  # raises where one is not
        datetime.date.fromisoformat(example.iso)
    assert TASK.examples(split, 1500, 0) == examples
    assert TASK.examples(split, 1500, 1) != examples


def test_years_are_new_and_formats_are_not():
    examples = TASK.examples("new-years", 1500, 0)
    years = [int(example.iso[:4]) for example in examples]
    assert min(years) < 1705 < 1895 < max(y for y in years if y < 2000)
    assert max(years) > 2295
    assert not any(1900 <= year <= 2099 for year in years)
    for text, iso, locale in examples[:200]:
        day = datetime.date.fromisoformat(iso)
        own = {write_date(day, p, locale) for p in date_patterns(locale)}
        assert text in own


def test_formats_are_new_and_days_are_of_the_test():
    days = {day.isoformat() for day in split_days()["test"]}
    for text, iso, locale in TASK.examples("new-formats", 600, 0):
        assert iso in days
        day = datetime.date.fromisoformat(iso)
        assert text not in {write_date(day, p, locale) for p in date_patterns(locale)}
    assert new_formats("EEEE 'den' d. MMMM y") == ("y MMMM d", "d-MMMM-y", "MMMM d y")
    assert new_formats("y年M月d日(E)")[1] == "d日-M月-y年"


def test_long_texts_are_longer_than_any_of_the_training():
    longest = max(len(e.text) for e in date_examples(20_000, seed=0))
    days = {day.isoformat() for day in split_days()["test"]}
    for text, iso, _ in TASK.examples("long-texts", 600, 0):
        assert len(text) > TASK.max_source_len >= longest
        assert iso in days


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
        (lambda: TASK.pairs("tset", 3, 0), r"split \('tset'\) must be one of"),
        (lambda: TASK.pairs("locale-xx", 3, 0), r"split \('locale-xx'\) must be one"),
        (lambda: TASK.pairs("new-years", 0, 0), r"count \(0\) must be"),
        (
            lambda: harder_examples("old", 1, seed=0, locales=LOCALES),
            r"split \('old'\) must be one of new-years",
        ),
        (lambda: DatesTask(held_out=["xx"]), r"held_out \(\('xx',\)\) must be among"),
        (lambda: DatesTask(locales=["fr"], held_out=["fr"]), "leaves no locale"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
