"""Rows of different length, held without padding until a batch is asked for.

N rows · B rows of a batch · L length of the longest of them
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor


class Ragged:
    """Rows of ids, end to end in one tensor: as large as the ids, not as the padding.

    Padded to one length, two million sentences would take as much memory as the longest
    of them two million times.

    Args:
        rows: ids; each row may have another length.
        pad_id: fills the shorter rows of a batch up.
    """

    def __init__(self, rows: Iterable[Sequence[int]], *, pad_id: int) -> None:
        lengths: list[int] = []
        ids = array("i")  # a list would take eight times the memory
        for row in rows:
            lengths.append(len(row))
            ids.extend(row)
        self.pad_id = pad_id
        self.ids = torch.from_numpy(np.array(ids, dtype=np.int32))  # (all ids,)
        self.lengths = torch.tensor(lengths, dtype=torch.int64)  # (N,)
        self.starts = self.lengths.cumsum(0) - self.lengths  # (N,)

    def __len__(self) -> int:
        return len(self.lengths)

    def padded(self, rows: Tensor) -> Tensor:
        """Return rows of these numbers (B,), filled up to the longest: int64 (B, L)."""
        lengths = self.lengths[rows][:, None]  # (B, 1)
        column = torch.arange(int(lengths.max()))  # (L,)
        place = self.starts[rows][:, None] + column  # (B, L)
        ids = self.ids[place.clamp(max=len(self.ids) - 1)].long()  # (B, L)
        return ids.masked_fill_(column >= lengths, self.pad_id)


def cut_by_tokens(rows: Tensor, src: Ragged, tgt: Ragged, budget: int) -> list[Tensor]:
    """Cut rows, in their order, into batches: each takes rows as long as they fit.

    The budget is the most that rows · (longest source + longest target) may be. A row
    that is larger alone makes a batch of its own.
    """
    batches, first, longest_src, longest_tgt = [], 0, 0, 0
    lengths = zip(src.lengths[rows].tolist(), tgt.lengths[rows].tolist(), strict=True)
    for i, (src_len, tgt_len) in enumerate(lengths):
        longest_src = max(longest_src, src_len)
        longest_tgt = max(longest_tgt, tgt_len)
        if first < i and (i + 1 - first) * (longest_src + longest_tgt) > budget:
            batches.append(rows[first:i])
            first, longest_src, longest_tgt = i, src_len, tgt_len
    return [*batches, rows[first:]]
