"""Sums: right, and the same sum the other way round in the same split."""

from collections import Counter

import pytest

from tformer.tasks import SPLITS, AdditionTask


def numbers(source):
    return tuple(map(int, source.split("+")))


def test_sums_are_right():
    for a_plus_b, total in AdditionTask().pairs("train", 3000, 0):
        assert sum(numbers(a_plus_b)) == int(total)
        assert a_plus_b == "{}+{}".format(*numbers(a_plus_b))  # no leading zeros
        assert total == str(int(total))


def test_both_orders_are_in_one_split():
    task = AdditionTask(max_digits=2)
    drawn = {split: task.pairs(split, 250, 1) for split in SPLITS}
    sums = {
        split: {frozenset(numbers(pair.source)) for pair in drawn[split]}
        for split in SPLITS
    }
    assert sums["test"].isdisjoint(sums["train"] | sums["validation"])
    assert sums["validation"].isdisjoint(sums["train"])
    sources = {pair.source for pair in task.pairs("test", 350, 2)}
    mirrored = {"{1}+{0}".format(*source.split("+")) for source in sources}
    assert len(sources & mirrored) > 100  # and both do come up


def test_short_numbers_come_up_as_often_as_long_ones():
    pairs = AdditionTask().pairs("train", 9000, 0)
    lengths = Counter(len(pair.source.split("+")[0]) for pair in pairs)
    assert set(lengths) == {1, 2, 3}
    assert min(lengths.values()) > 2700
    assert {0, 9, 10, 99, 100, 999} <= {n for p in pairs for n in numbers(p.source)}


@pytest.mark.parametrize("good", ["0+0", "57+68", "999+1"])
def test_sums_that_may_be_asked(good):
    AdditionTask().validate(good)


@pytest.mark.parametrize(
    "bad", ["57-68", "57 + 68", "1+2+3", "1000+1", "01+2", "+5", "5", "٣+٤", "1+2\n"]
)
def test_sums_that_may_not(raises, bad):
    message = f"{bad!r} is not a sum such as 57+68, of two numbers of up to 3 digits"
    with raises(ValueError, message):
        AdditionTask().validate(bad)


def test_there_must_be_a_digit(raises):
    with raises(ValueError, "max_digits (0) must be at least 1"):
        AdditionTask(max_digits=0)
