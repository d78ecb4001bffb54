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
    options = {"batch_size": 5, "seed": 0, **changes}
    return list(islice(batches_of_pairs(VOCABULARY, PAIRS, **options), count))


def test_each_pair_comes_once_in_every_pass():
    batches = take(280)
    for start in (0, 140):
        seen = [pair for b in batches[start : start + 140] for pair in texts(b)]
        assert sorted(seen) == sorted(PAIRS)


def test_passes_differ_and_batches_come_in_no_order_of_length():
    batches = take(280)
    together = [frozenset(texts(b)) for b in batches]
    assert len(set(together[:140]) & set(together[140:])) < 14  # other pairs meet
    lengths = [b.src.shape[1] for b in batches[:50]]
    assert lengths != sorted(lengths)


def test_texts_of_one_length_go_together():
    batches = take(140)
    padding = sum((b.src == VOCABULARY.pad_id).sum().item() for b in batches)
    assert padding / sum(b.src.numel() for b in batches) < 0.05
    for b in batches:  # and no column is padding alone
        assert (b.src[:, -1] != VOCABULARY.pad_id).any()
        assert (b.tgt[:, -1] != VOCABULARY.pad_id).any()


def test_what_is_left_over_makes_a_smaller_batch():
    sizes = sorted(len(b.src) for b in take(234, batch_size=3))
    assert sizes == [1] + [3] * 233


def test_the_same_seed_gives_the_same_batches():
    first, again, other = take(60), take(60), take(60, seed=1)
    for one, two in zip(first, again, strict=True):
        assert one.src.equal(two.src)
        assert one.tgt.equal(two.tgt)
    assert any(not a.src.equal(b.src) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    ("pairs", "batch_size", "message"),
    [
        ([], 5, "at least one pair"),
        (PAIRS, 0, r"batch_size \(0\)"),
        ([("1", "é")], 5, "'é'"),
    ],
)
def test_bad_input_is_named_at_once(pairs, batch_size, message):
    with pytest.raises(ValueError, match=message):
        batches_of_pairs(VOCABULARY, pairs, batch_size=batch_size, seed=0)
