"""Windows of a text: what they hold, and that each batch can be made without others."""

import tracemalloc
from itertools import islice

import numpy as np
import pytest
import torch

from tformer.data.windows import masked_batches, text_batches

STREAM = torch.arange(3, 503)  # each id says where it stood


def take(count, stream=STREAM, **changes):
    options = {"batch_size": 4, "context": 6, "seed": 0, **changes}
    return list(islice(text_batches(stream, **options), count))


def test_windows_are_pieces_of_the_text():
    for batch in take(50):
        assert batch.ids.shape == (4, 7)
        assert batch.ids.dtype == torch.int64
        first = batch.ids[:, :1]
        assert batch.ids.equal(first + torch.arange(7))
        assert first.min() >= 3
        assert first.max() <= 496


def test_every_place_comes_up_as_often():
    (batch,) = take(1, batch_size=40_000)
    counts = (batch.ids[:, 0] - 3).bincount()
    assert len(counts) == 494  # the last window that fits begins at 493
    assert counts.min() > 40  # 81 on the average
    assert counts.max() < 130


@pytest.mark.parametrize(
    "stream",
    [STREAM.numpy().astype(np.uint16), STREAM.numpy().astype(np.uint32), STREAM.int()],
)
def test_arrays_of_every_type_give_the_same_windows(stream):
    for one, two in zip(take(5), take(5, stream), strict=True):
        assert one.ids.equal(two.ids)


def test_of_a_large_file_only_windows_are_read(tmp_path):
    stream = np.memmap(tmp_path / "a", np.uint16, "w+", shape=100_000_000)  # sparse
    tracemalloc.start()
    take(100, stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000  # of 200 MB


def test_a_text_of_one_window_is_enough(raises):
    assert (take(1, STREAM[:7])[0].ids == STREAM[:7]).all()
    with raises(ValueError, "stream must be ids (N,) with N at least 7, not (6,)"):
        take(1, STREAM[:6])
    with raises(ValueError, "stream must be ids (N,) with N at least 7, not (20, 25)"):
        take(1, STREAM.view(20, 25))


def test_going_on_gives_what_would_have_come():
    whole = take(40)
    for start in (0, 1, 17, 39):
        for one, two in zip(whole[start:], take(40 - start, start=start), strict=True):
            assert one.ids.equal(two.ids)
    far = take(1, start=10**12)[0]  # at once
    assert far.ids.shape == (4, 7)


def test_seeds_and_batches_differ():
    one, two = take(2)
    assert not one.ids.equal(two.ids)
    assert not one.ids.equal(take(1, seed=1)[0].ids)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 0}, "batch_size (0) must be at least 1"),
        ({"context": 0}, "context (0) must be at least 1"),
        ({"seed": -1}, "seed (-1) must be at least 0"),
        ({"start": -1}, "start (-1) must be at least 0"),
    ],
)
def test_bad_input_is_named_at_once(raises, changes, message):
    with raises(ValueError, message):
        text_batches(STREAM, **{"batch_size": 4, "context": 6, "seed": 0, **changes})


def masked(count, **changes):
    options = {"mask_id": 503, "vocab_size": 504, "special_ids": (0, 1, 2, 503)}
    options |= {"batch_size": 4, "context": 60, "seed": 0, **changes}
    return list(islice(masked_batches(STREAM, **options), count))


def test_what_is_asked_stood_there():
    changed = 0
    for batch in masked(20):
        asked = batch.asked != 0
        original = torch.where(asked, batch.asked, batch.corrupted)
        assert original.equal(original[:, :1] + torch.arange(60))
        changed += int((batch.corrupted != original).sum())
        assert asked.any()
        assert not asked.all()
    assert changed > 0.5 * sum(batch.num_tokens(0) for batch in masked(20))


def test_masked_batches_go_on_too():
    for one, two in zip(masked(9)[5:], masked(4, start=5), strict=True):
        assert one.corrupted.equal(two.corrupted)
        assert one.asked.equal(two.asked)
    assert not masked(1)[0].asked.equal(masked(1, seed=1)[0].asked)
