"""Batches: pairs of texts as ids, each batch of texts of about the same length.

B batch · S length of the longest source · T length of the longest target
"""

# --8<-- [start:imports]
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.checks import check_positive
from tformer.data.vocabulary import CharacterVocabulary

# --8<-- [end:imports]

# --8<-- [start:BATCHES_SORTED_TOGETHER]
# So many batches are sorted by length at a time: enough for little padding, and few
# enough that a batch still mixes what comes from everywhere.
BATCHES_SORTED_TOGETHER = 50
# --8<-- [end:BATCHES_SORTED_TOGETHER]


# --8<-- [start:Batch]
class Batch(NamedTuple):
    """Sources and their targets, filled up with padding.

    The target holds the start token, the text and the end token. The decoder reads
    `tgt[:, :-1]` and has to say `tgt[:, 1:]`: at each position the next token.
    """

    src: Tensor  # int64 (B, S)
    tgt: Tensor  # int64 (B, T)
    # --8<-- [end:Batch]


# --8<-- [start:batches_of_pairs]
def batches_of_pairs(
    vocabulary: CharacterVocabulary,
    pairs: Sequence[tuple[str, str]],
    *,
    batch_size: int,
    seed: int,
) -> Iterator[Batch]:
    """Yield batches without end; each pair comes once in every pass over the data.

    Padding is computed like any token, so texts of like length go together: a pass is
    shuffled, cut into stretches of 50 batches, each stretch sorted by the length of its
    sources and cut into batches, and these come in a random order.

    Args:
        vocabulary: holds every character of the pairs.
        pairs: sources and targets.
        batch_size: pairs in a batch; the last of a pass may be smaller.
        seed: of the order. The same seed gives the same batches.

    Yields:
        Batches.

    Raises:
        ValueError: there is no pair, `batch_size` below 1, or a character unknown.
    """
    check_positive(batch_size=batch_size)
    if not pairs:
        raise ValueError("pairs must hold at least one pair")
    sources, targets = zip(*pairs, strict=True)
    src = vocabulary.encode_batch(sources, eos=True)
    tgt = vocabulary.encode_batch(targets, bos=True, eos=True)
    return _endless(src, tgt, vocabulary.pad_id, batch_size, seed)
    # --8<-- [end:batches_of_pairs]


# --8<-- [start:endless]
def _endless(
    src: Tensor, tgt: Tensor, pad_id: int, batch_size: int, seed: int
) -> Iterator[Batch]:
    generator = torch.Generator().manual_seed(seed)
    src_len, tgt_len = ((ids != pad_id).sum(dim=1) for ids in (src, tgt))
    while True:
        order = torch.randperm(len(src), generator=generator)
        for stretch in torch.split(order, BATCHES_SORTED_TOGETHER * batch_size):
            by_length = stretch[src_len[stretch].argsort(stable=True)]
            batches = torch.split(by_length, batch_size)
            for i in torch.randperm(len(batches), generator=generator).tolist():
                rows = batches[i]
                yield Batch(
                    src[rows, : src_len[rows].max()], tgt[rows, : tgt_len[rows].max()]
                )
    # --8<-- [end:endless]
