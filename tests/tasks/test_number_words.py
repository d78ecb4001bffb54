"""Number words: read in one way only, and split by the number."""

import sys
import unicodedata
from collections import Counter

import pytest

from tformer.tasks import SPLITS, NumberWordsTask
from tformer.tasks.number_words import ALWAYS_IN_TRAINING, LANGUAGES, write_number

KNOWN = {
    "en": "one thousand and one",
    "de": "eintausendeins",
    "fr": "mille un",
    "es": "mil uno",
    "it": "milleuno",
    "pt": "mil e um",
    "nl": "duizendéén",
    "pl": "tysiąc jeden",
    "ru": "одна тысяча один",
    "uk": "одна тисяча один",
}
EVERY = [(x, 1) for x in sorted(KNOWN)]  # language, and one in so many numbers


@pytest.mark.parametrize("language", LANGUAGES)
def test_known_numbers(language):
    assert write_number(1001, language) == KNOWN[language]


def test_no_words_mean_two_numbers():
    """In one language or in two: below 2000, and a sample of those above."""
    meaning = {}
    for number in (*range(2000), *range(2000, 1_000_000, 997)):
        for language in LANGUAGES:
            words = write_number(number, language)
            assert meaning.setdefault(words, number) == number, (words, language)
            assert unicodedata.is_normalized("NFC", words)
            assert not {"\xad", "\xa0", "\u202f"} & set(words)


def test_a_number_is_in_one_split_in_all_languages():
    task = NumberWordsTask(languages=["en", "de"])
    counts = {"train": 3000, "validation": 900, "test": 900}
    numbers = {s: {p.target for p in task.pairs(s, counts[s], 1)} for s in SPLITS}
    assert numbers["test"].isdisjoint(numbers["train"] | numbers["validation"])
    assert numbers["validation"].isdisjoint(numbers["train"])
    assert {str(number) for number in range(ALWAYS_IN_TRAINING)} < numbers["train"]


def test_lengths_and_languages_come_up_as_often():
    pairs = NumberWordsTask(languages=["en", "ru"]).pairs("train", 6000, 0)
    lengths = Counter(len(pair.target) for pair in pairs)
    assert set(lengths) == {1, 2, 3, 4}
    assert min(lengths.values()) > 1300
    assert sum(pair.source.isascii() for pair in pairs) == pytest.approx(3000, abs=200)


@pytest.mark.parametrize("language", ["en", "de", "pl"])
def test_the_task_has_every_character_and_the_longest_words(language):
    """Against all 10,000 numbers: few are looked at to find them."""
    task = NumberWordsTask(languages=[language])
    words = [write_number(number, language) for number in range(10_000)]
    letters = set().union(*words) | set("0123456789")
    assert set(task.vocabulary().characters) == letters
    assert task.max_source_len == max(map(len, words))


@pytest.mark.parametrize(
    ("language", "step"),
    [("en", 7), *(pytest.param(*x, marks=pytest.mark.nightly) for x in EVERY)],
)
def test_all_numbers_of_five_digits_are_sources(language, step):
    task = NumberWordsTask(languages=[language], max_digits=5)
    words = [write_number(number, language) for number in range(0, 100_000, step)]
    assert task.max_source_len == max(map(len, words))
    assert set(task.vocabulary().characters) == set().union(*words, "0123456789")


def test_no_words_are_longer_than_the_task_says():
    assert NumberWordsTask(max_digits=6).max_source_len == 83
    assert len(write_number(999_999, "pl")) == 83


def test_settings(raises):
    assert NumberWordsTask(languages=["de"], max_digits=2).max_source_len == 16
    with raises(ValueError, "languages must name at least one"):
        NumberWordsTask(languages=[])
    with raises(ValueError, "max_digits (7) must be at most 6"):
        NumberWordsTask(max_digits=7)
    with raises(ValueError, "max_digits (0) must be at least 1"):
        NumberWordsTask(max_digits=0)
    with raises(ValueError, "language ('xx') is unknown to num2words"):
        NumberWordsTask(languages=["xx"]).pairs("train", 1, 0)


def test_a_missing_num2words_is_named(monkeypatch):
    write_number.cache_clear()
    monkeypatch.setitem(sys.modules, "num2words", None)
    with pytest.raises(ImportError, match=r"num2words: pip install 'tformer\[train\]'"):
        write_number(1, "en")
