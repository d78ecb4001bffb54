"""Batches: every pair in every pass, little padding, repeatable."""

from itertools import islice

import pytest

from tformer.data.batches import batches_of_pairs
from tformer.data.vocabulary import CharacterVocabulary

VOCABULARY = CharacterVocabulary("0123456789x")
# Every source is another number, with a tail of x that makes its length vary.
PAIRS = [(f"{i}" + "x" * (i * 7 % 13), f"{i}" + "x" * (i % 3)) for i in range(700)]


def texts(batch):
    for src, tgt in zip(batch.src.tolist(), batch.tgt.tolist(), strict=True):
        assert tgt[0] == VOCABULARY.bos_id
        assert VOCABULARY.eos_id in src
        assert VOCABULARY.eos_id in tgt
        yield VOCABULARY.decode(src), VOCABULARY.decode(tgt)


def take(count, **changes):
    size = {} if "batch_tokens" in changes else {"batch_size": 5}
    options = {**size, "seed": 0, **changes}
    return list(islice(batches_of_pairs(VOCABULARY, PAIRS, **options), count))


def same(one, two):
    return one.src.equal(two.src) and one.tgt.equal(two.tgt)


def test_each_pair_comes_once_in_every_pass_with_others_and_in_no_order_of_length():
    batches = take(280)
    together = [sorted(texts(b)) for b in batches]
    for start in (0, 140):
        seen = [pair for each in together[start : start + 140] for pair in each]
        assert sorted(seen) == sorted(PAIRS)
    assert sum(each in together[140:] for each in together[:140]) < 14
    lengths = [b.src.shape[1] for b in batches[:50]]
    assert lengths != sorted(lengths)


def test_texts_of_one_length_go_together():
    batches = take(140)
    padding = sum((b.src == VOCABULARY.pad_id).sum().item() for b in batches)
    assert padding / sum(b.src.numel() for b in batches) < 0.05
    for b in batches:  # and no column is padding alone
        assert (b.src[:, -1] != VOCABULARY.pad_id).any()
        assert (b.tgt[:, -1] != VOCABULARY.pad_id).any()


@pytest.mark.parametrize(
    "options",
    [{"batch_size": 5}, {"batch_size": 3}, {"batch_tokens": 90}],
)
def test_the_seed_decides_and_going_on_gives_what_would_have_come(options):
    whole = take(500, **options)  # more than two passes
    for start in (0, 1, 49, 50, 51, 139, 140, 290, 480):
        for one, two in zip(
            whole[start:], take(20, start=start, **options), strict=False
        ):
            assert same(one, two)
    assert not all(map(same, whole, take(20, seed=1, **options)))


@pytest.mark.parametrize(("budget", "batches"), [(23, 700), (90, 700), (10**6, 1)])
def test_no_batch_has_more_tokens_than_it_may(budget, batches):
    seen = []
    for batch in take(batches, batch_tokens=budget):
        assert batch.src.numel() + batch.tgt.numel() <= budget
        assert batch.src[:, -1].any()
        assert batch.tgt[:, -1].any()
        seen += texts(batch)
        if len(seen) >= len(PAIRS):
            break
    assert sorted(seen) == sorted(PAIRS)


def test_batches_by_tokens_are_full():
    batches = take(150, batch_tokens=200)
    computed = [b.src.numel() + b.tgt.numel() for b in batches]
    assert sum(computed) / len(computed) > 0.9 * 200
    # and of different numbers of pairs, as their lengths differ
    assert max(map(len, batches)) > 1.5 * min(map(len, batches))


def test_a_pair_larger_than_the_budget_is_named(raises):
    pairs = [("1", "1"), ("12345", "12"), ("2", "2")]
    message = "batch_tokens (9) must be at least 10, the tokens of ('12345', '12')"
    with raises(ValueError, message):
        batches_of_pairs(VOCABULARY, pairs, batch_tokens=9, seed=0)
    endless = batches_of_pairs(VOCABULARY, pairs, batch_tokens=10, seed=0)
    assert {len(b) for b in islice(endless, 20)} == {1, 2}


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([], {}, "at least one pair"),
        (PAIRS, {"batch_size": 0}, r"batch_size \(0\)"),
        (PAIRS, {"batch_tokens": 9}, "either batch_size or batch_tokens"),
        (PAIRS, {"start": -1}, r"start \(-1\)"),
        ([("1", "é")], {}, "'é'"),
    ],
)
def test_bad_input_is_named_at_once(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        batches_of_pairs(VOCABULARY, pairs, **{"batch_size": 5, "seed": 0, **options})
