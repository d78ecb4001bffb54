"""Sums: right, and the same sum the other way round in the same split."""

import itertools
from collections import Counter

from tformer.tasks import SPLITS, AdditionTask


def test_sums_are_right_and_short_numbers_come_up_as_often_as_long_ones():
    lengths, numbers = Counter(), set()
    for source, total in AdditionTask().pairs("train", 9000, 0):
        first, second = map(int, source.split("+"))
        assert (source, total) == (f"{first}+{second}", str(first + second))
        lengths[len(str(first))] += 1
        numbers |= {first, second}
    assert set(lengths) == {1, 2, 3}
    assert min(lengths.values()) > 2700
    assert {0, 9, 10, 99, 100, 999} <= numbers


def test_both_orders_are_in_one_split():
    task = AdditionTask(max_digits=2)
    splits = set()
    for a, b in itertools.combinations(range(40), 2):
        assert task.split_of(f"{a}+{b}") == task.split_of(f"{b}+{a}")
        splits.add(task.split_of(f"{a}+{b}"))
    assert splits == set(SPLITS)
    sources = {pair.source for pair in task.pairs("test", 350, 2)}
    mirrored = {"{1}+{0}".format(*source.split("+")) for source in sources}
    assert len(sources & mirrored) > 100  # and both do come up


def test_there_must_be_a_digit(raises):
    with raises(ValueError, "max_digits (0) must be at least 1"):
        AdditionTask(max_digits=0)
