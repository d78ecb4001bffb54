"""Drawing from a split."""

import random

import pytest

from tformer.data.pairs import Pair, hash_split
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks.task import HashSplitTask


class Dice(HashSplitTask):
    name = "dice"
    GIVE_UP = 2000
    draws = 0

    def draw(self, chance: random.Random) -> str:
        self.draws += 1
        return str(chance.randrange(200))

    def vocabulary(self) -> CharacterVocabulary:
        return CharacterVocabulary("0123456789x")

    def pair(self, drawn: str, chance: random.Random) -> Pair:
        return Pair(drawn, "x")


def test_there_may_be_too_few():
    sides = [str(i) for i in range(200) if hash_split(str(i)) == "test"]
    assert {pair.source for pair in Dice().pairs("test", len(sides), 0)} == set(sides)
    message = (
        rf"count \({len(sides) + 1}\) is too large: after {len(sides)} pairs, nothing "
        "new was found in the test split of dice"
    )
    with pytest.raises(ValueError, match=message):
        Dice().pairs("test", len(sides) + 1, 0)
    assert len(Dice().pairs("train", 1000, 0)) == 1000  # where they come round again


def test_only_what_is_asked_for_is_drawn():
    task = Dice()
    task.pairs("train", 100, 0)
    assert task.draws < 130
