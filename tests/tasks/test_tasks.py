"""What holds for every task: nothing of a test in a training, and all of one face."""

import pytest

from tformer.tasks import SPLITS, TASKS, Pair

NAMES = ["copy", "reverse", "sort", "addition", "number-words", "dates"]
NAMES += ["dates-new-locales"]


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


def test_no_source_is_in_two_splits(drawn):
    sources = {split: {pair.source for pair in drawn[split]} for split in SPLITS}
    assert sources["train"].isdisjoint(sources["test"])
    assert sources["train"].isdisjoint(sources["validation"])
    assert sources["validation"].isdisjoint(sources["test"])


def test_a_training_with_another_seed_knows_no_more_of_the_test(task, drawn):
    other = {pair.source for pair in task.pairs("train", 6000, 4)}
    assert other.isdisjoint(pair.source for pair in drawn["test"])
    assert other != {pair.source for pair in drawn["train"]}


def test_held_out_sources_are_all_different(drawn):
    for split in ("validation", "test"):
        assert len({pair.source for pair in drawn[split]}) == 1000


def test_pairs_have_the_characters_and_the_lengths_that_the_task_says(task, drawn):
    characters = set(task.vocabulary().characters)
    for pair in (pair for split in SPLITS for pair in drawn[split]):
        assert isinstance(pair, Pair)
        assert set(pair.source) | set(pair.target) <= characters
        assert 1 <= len(pair.source) <= task.max_source_len
        assert 1 <= len(pair.target) <= task.max_target_len
        task.validate(pair.source)
    longest = max(len(pair.target) for pair in drawn["train"])
    assert longest == task.max_target_len
    longest = max(len(pair.source) for pair in drawn["train"])
    assert longest >= 0.8 * task.max_source_len


def test_one_source_has_one_target(drawn):
    targets = {}
    for pair in (pair for split in SPLITS for pair in drawn[split]):
        assert targets.setdefault(pair.source, pair.target) == pair.target


def test_the_same_seed_gives_the_same_pairs(task, drawn):
    assert task.pairs("test", 1000, 3) == drawn["test"]
    assert task.pairs("test", 50, 3) == drawn["test"][:50]
    assert task.pairs("test", 1000, 5) != drawn["test"]


def test_bad_input_is_named(task):
    with pytest.raises(
        ValueError, match=r"split \('dev'\) must be one of train, valid"
    ):
        task.pairs("dev", 5, 0)
    with pytest.raises(ValueError, match=r"count \(0\)"):
        task.pairs("test", 0, 0)
    with pytest.raises(ValueError, match=r"has 0 characters|'' is not a sum"):
        task.validate("")
    with pytest.raises(ValueError, match=r"has 99 characters|is not a sum"):
        task.validate("1" * 99)
    with pytest.raises(ValueError, match=r"U\+2603|is not a sum"):
        task.validate("☃")
