"""Copy, reverse and sort."""

import random
from collections import Counter

import pytest

from tformer.data.pairs import hash_split
from tformer.tasks import SequenceTask


@pytest.mark.parametrize(
    ("name", "answer"), [("copy", "hello"), ("reverse", "olleh"), ("sort", "ehllo")]
)
def test_answers(name, answer):
    assert SequenceTask(name).pair("hello", random.Random()) == ("hello", answer)


def test_every_order_of_some_letters_is_in_one_split():
    task = SequenceTask("sort", alphabet="abcd", max_len=16)
    for split in ("train", "validation", "test"):
        for pair in task.pairs(split, 100, 0):
            assert hash_split(pair.target) == split


def test_lengths_and_letters_come_up_as_often():
    pairs = SequenceTask("copy", max_len=5).pairs("train", 20_000, 0)
    lengths = Counter(len(pair.source) for pair in pairs if len(pair.source) > 2)
    assert set(lengths) == {3, 4, 5}
    assert min(lengths.values()) > 0.85 * max(lengths.values())
    letters = Counter(c for pair in pairs for c in pair.source if len(pair.source) == 5)
    assert min(letters.values()) > 0.75 * max(letters.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "shuffle"}, "name ('shuffle') must be one of copy, reverse, sort"),
        ({"max_len": 0}, "max_len (0) must be at least 1"),
        ({"alphabet": ""}, "alphabet must hold at least one letter"),
        ({"alphabet": "aba"}, "characters must differ, but ['a'] occur twice"),
    ],
)
def test_bad_settings_are_named(raises, arguments, message):
    with raises(ValueError, message):
        SequenceTask(**{"name": "copy", **arguments})
