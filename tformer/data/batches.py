"""Batches of pairs: texts of about the same length together, by pairs or by tokens.

B pairs in a batch · S length of the longest source · T length of the longest target
"""

import itertools
from collections.abc import Iterator, Sequence

import torch

from tformer.checks import check_at_least_0, check_positive
from tformer.data.batch import PairBatch
from tformer.data.ragged import Ragged, cut_by_tokens
from tformer.data.vocabulary import Vocabulary

# So many batches are sorted by length at a time: enough for little padding, and few
# enough that a batch still mixes what comes from everywhere.
BATCHES_SORTED_TOGETHER = 50


def batches_of_pairs(
    vocabulary: Vocabulary,
    pairs: Sequence[tuple[str, str]],
    *,
    seed: int,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    start: int = 0,
) -> Iterator[PairBatch]:
    """Yield batches without end; each pair comes once in every pass over the data.

    Padding is computed like any token, so texts of like length go together: a pass is
    shuffled, cut into stretches of about 50 batches, each stretch sorted by the length
    of its sources and cut into batches, and these come in a random order.

    A batch has a size in pairs, or in tokens: then it takes pairs as long as they fit.
    What is counted is what is computed, B · (S + T): every source and every target at
    the length of the longest of the batch, padding, start and end tokens included.

    Args:
        vocabulary: holds every character of the pairs.
        pairs: sources and targets.
        seed: of the order. The same seed gives the same batches.
        batch_size: pairs in a batch; the last of a pass may be smaller.
        batch_tokens: in its place, how many tokens a batch may hold, the largest pair's
            at least.
        start: leave out so many batches, to go on where a training stopped.
    """
    sizes = {"batch_size": batch_size, "batch_tokens": batch_tokens}
    given = {name: size for name, size in sizes.items() if size is not None}
    if len(given) != 1:
        raise ValueError("give either batch_size or batch_tokens")
    check_positive(**given)
    check_at_least_0(start=start)
    if not pairs:
        raise ValueError("pairs must hold at least one pair")
    pad_id, encode = vocabulary.pad_id, vocabulary.encode
    src = Ragged((encode(text, eos=True) for text, _ in pairs), pad_id=pad_id)
    tgt = Ragged((encode(text, bos=True, eos=True) for _, text in pairs), pad_id=pad_id)
    if batch_tokens is not None:
        total = src.lengths + tgt.lengths  # (number of pairs,)
        if total[worst := int(total.argmax())] > batch_tokens:
            raise ValueError(
                f"batch_tokens ({batch_tokens}) must be at least {total[worst]}, the "
                f"tokens of {repr(pairs[worst])[:200]}"
            )
        # As many as fit on the average.
        size = max(1, batch_tokens * len(pairs) // int(total.sum()))
    else:
        size = given["batch_size"]

    def endless() -> Iterator[torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        while True:
            order = torch.randperm(len(pairs), generator=generator)
            for stretch in torch.split(order, BATCHES_SORTED_TOGETHER * size):
                rows = stretch[src.lengths[stretch].argsort(stable=True)]
                if batch_tokens is None:
                    batches = list(torch.split(rows, size))
                else:
                    batches = cut_by_tokens(rows, src, tgt, batch_tokens)
                for i in torch.randperm(len(batches), generator=generator).tolist():
                    yield batches[i]

    rows_of_batches = itertools.islice(endless(), start, None)
    return (PairBatch(src.padded(rows), tgt.padded(rows)) for rows in rows_of_batches)
