"""What holds for every task: nothing of a test in a training, and all of one face."""

import random

import pytest

from tformer.data.pairs import hash_split
from tformer.data.vocabulary import CharacterVocabulary
from tformer.tasks import SPLITS, TASKS, Pair
from tformer.tasks.task import HashSplitTask

NAMES = ["copy", "reverse", "sort", "addition", "number-words", "dates"]
NAMES += ["dates-new-locales", "dates-as-typed"]


def test_the_tasks_have_their_names():
    assert list(TASKS) == NAMES
    assert all(task.name == name for name, task in TASKS.items())
    assert all("→" in task.description for task in TASKS.values())


@pytest.fixture(scope="module", params=NAMES)
def task(request):
    return TASKS[request.param]


@pytest.fixture(scope="module")
def drawn(task):
    counts = {"train": 6000, "validation": 1000, "test": 1000}
    return {split: task.pairs(split, counts[split], 3) for split in SPLITS}


@pytest.mark.by_day(4)
def test_no_source_is_in_two_splits(drawn):
    sources = {split: {pair.source for pair in drawn[split]} for split in SPLITS}
    assert sources["train"].isdisjoint(sources["test"] | sources["validation"])
    assert sources["validation"].isdisjoint(sources["test"])
    assert len(sources["validation"]) == len(sources["test"]) == 1000  # all different


def test_a_training_with_another_seed_knows_no_more_of_the_test(task, drawn):
    other = {pair.source for pair in task.pairs("train", 6000, 4)}
    assert other.isdisjoint(pair.source for pair in drawn["test"])
    assert other != {pair.source for pair in drawn["train"]}


def test_pairs_have_the_characters_and_the_lengths_that_the_task_says(task, drawn):
    characters = set(task.vocabulary().characters)
    targets = {}
    for pair in (pair for split in SPLITS for pair in drawn[split]):
        assert isinstance(pair, Pair)
        assert set(pair.source) | set(pair.target) <= characters
        assert 1 <= len(pair.source) <= task.max_source_len
        assert 1 <= len(pair.target) <= task.max_target_len
        assert targets.setdefault(pair.source, pair.target) == pair.target
    longest = max(len(pair.target) for pair in drawn["train"])
    assert longest == task.max_target_len
    longest = max(len(pair.source) for pair in drawn["train"])
    assert longest >= 0.8 * task.max_source_len


@pytest.mark.by_day(4)
def test_the_same_seed_gives_the_same_pairs(task, drawn):
    assert task.pairs("test", 1000, 3) == drawn["test"]
    assert task.pairs("test", 50, 3) == drawn["test"][:50]
    assert task.pairs("test", 1000, 5) != drawn["test"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda task: task.pairs("dev", 5, 0),
            r"\('dev'\) must be one of train, valid",
        ),
        (lambda task: task.pairs("test", 0, 0), r"count \(0\)"),
    ],
)
def test_bad_input_is_named(task, call, message):
    with pytest.raises(ValueError, match=message):
        call(task)


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


def test_there_may_be_too_few(raises):
    sides = [str(i) for i in range(200) if hash_split(str(i)) == "test"]
    assert {pair.source for pair in Dice().pairs("test", len(sides), 0)} == set(sides)
    message = (
        f"count ({len(sides) + 1}) is too large: after {len(sides)} pairs, nothing "
        "new was found in the test split of dice"
    )
    with raises(ValueError, message):
        Dice().pairs("test", len(sides) + 1, 0)
    assert len(Dice().pairs("train", 1000, 0)) == 1000  # where they come round again


def test_only_what_is_asked_for_is_drawn():
    task = Dice()
    task.pairs("train", 100, 0)
    assert task.draws < 130
