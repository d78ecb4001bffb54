"""Every kind of batch shows a training step the same face."""

import dataclasses

import pytest
import torch
from torch import Tensor

from tformer.data.batch import Batch, MaskedBatch, PairBatch, TextBatch


def ids(rows: int, columns: int) -> Tensor:
    return torch.arange(rows * columns).view(rows, columns) + 3


PAIR = PairBatch(ids(7, 5), ids(7, 3))
TEXT = TextBatch(ids(7, 5))
MASKED = MaskedBatch(ids(7, 5), ids(7, 5) + 100)


@pytest.mark.parametrize(
    ("batch", "inputs", "targets"),
    [
        (PAIR, (PAIR.src, PAIR.tgt[:, :2]), PAIR.tgt[:, 1:]),
        (TEXT, (TEXT.ids[:, :4],), TEXT.ids[:, :4] + 1),  # these ids count up
        (MASKED, (MASKED.corrupted,), MASKED.asked),
    ],
)
def test_what_is_read_and_what_is_asked(batch: Batch, inputs, targets):
    for read, expected in zip(batch.inputs, inputs, strict=True):
        assert read.equal(expected)
    assert batch.targets.equal(targets)
    moved = batch.to("meta", non_blocking=True)
    assert type(moved) is type(batch)
    assert {t.device.type for t in (*moved.inputs, moved.targets)} == {"meta"}
    assert len(moved) == 7


@pytest.mark.parametrize("batch", [PAIR, TEXT, MASKED])
@pytest.mark.parametrize("parts", range(1, 8))
def test_parts_are_the_rows_in_order(batch: Batch, parts: int):
    split = batch.split(parts)
    sizes = [len(part) for part in split]
    assert len(sizes) == parts
    assert sum(sizes) == len(batch) == 7
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    for field in dataclasses.fields(batch):
        together = torch.cat([getattr(part, field.name) for part in split])
        assert together.equal(getattr(batch, field.name))
    assert all(type(part) is type(batch) for part in split)


def test_targets_that_count():
    tgt = torch.tensor([[1, 5, 0, 6, 2], [1, 7, 2, 0, 0]])
    batch = PairBatch(ids(2, 3), tgt)
    # The start tokens are read, not said.
    assert [batch.num_tokens(pad_id) for pad_id in (0, None, 1)] == [5, 8, 8]
    assert MaskedBatch(ids(2, 3), torch.zeros(2, 3)).num_tokens(0) == 0


def test_bad_input(raises):
    with raises(ValueError, "parts (8) must be at most the 7 rows"):
        PAIR.split(8)
    with raises(ValueError, "parts (0) must be at least 1"):
        PAIR.split(0)
    with raises(ValueError, "src has 7 rows but tgt has 6"):
        PairBatch(ids(7, 5), ids(6, 5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        TEXT.ids = ids(1, 2)
