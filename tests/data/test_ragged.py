"""Rows end to end give the batches that padded rows would give."""

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from tformer.data.ragged import Ragged, cut_by_tokens

ROWS = st.lists(st.lists(st.integers(1, 2**31 - 1), max_size=9), min_size=1)


@given(ROWS, st.data())
def test_rows_come_back_padded_to_the_longest(rows, data):
    ragged = Ragged(rows, pad_id=0)
    assert len(ragged) == len(rows)
    wanted = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    padded = ragged.padded(torch.tensor(wanted))
    longest = max(len(rows[i]) for i in wanted)
    expected = [rows[i] + [0] * (longest - len(rows[i])) for i in wanted]
    assert padded.tolist() == expected
    assert (padded.dtype, ragged.ids.dtype) == (torch.int64, torch.int32)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1))
def test_cuts_are_as_large_as_the_budget_allows(lengths):
    src = Ragged(([3] * s for s, _ in lengths), pad_id=0)
    tgt = Ragged(([3] * t for _, t in lengths), pad_id=0)
    rows = torch.randperm(len(lengths))
    batches = cut_by_tokens(rows, src, tgt, 20)
    assert torch.cat(batches).equal(rows)

    def size(batch):
        return src.padded(batch).numel() + tgt.padded(batch).numel()

    assert all(0 < size(batch) <= 20 for batch in batches)
    for batch, following in itertools.pairwise(batches):
        assert size(torch.cat((batch, following[:1]))) > 20
