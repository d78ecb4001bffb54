"""Windows of a long text as batches, for GPT and for BERT.

N tokens of the text · B windows in a batch · C context, the tokens of a window
"""

import itertools
from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tformer.checks import check_at_least_0, check_positive
from tformer.data.batch import MaskedBatch, TextBatch
from tformer.data.masking import mask_tokens

Stream = Tensor | npt.NDArray[np.integer]


def text_batches(
    stream: Stream, *, batch_size: int, context: int, seed: int, start: int = 0
) -> Iterator[TextBatch]:
    """Yield windows of a long text without end, each from a place drawn at random.

    As nanoGPT does: places are drawn evenly and with replacement, so there are no
    passes, and two windows may overlap. Batch n depends on `seed` and n alone.

    Args:
        stream: the ids of the text, (N,): a tensor, an array, or a file opened by
            `open_token_stream`, of which only the windows are read.
        batch_size: B, windows in a batch.
        context: C, how many tokens the model reads; a window has one more.
        seed: of the places, at least 0.
        start: leave out so many batches.
    """
    draws = _windows(stream, batch_size, context, context + 1, seed, start)
    return (TextBatch(ids) for ids, _ in draws)


def masked_batches(
    stream: Stream,
    *,
    batch_size: int,
    context: int,
    mask_id: int,
    vocab_size: int,
    special_ids: Collection[int],
    seed: int,
    start: int = 0,
    probability: float = 0.15,
) -> Iterator[MaskedBatch]:
    """Yield windows of a long text without end, with some tokens hidden, as for BERT.

    Each time that a place of the text comes up, other tokens of it are hidden. Batch n
    depends on `seed` and n alone. The arguments are those of `text_batches`, but that
    windows have C tokens, and those of `mask_tokens`, and so are the errors.
    """
    draws = _windows(stream, batch_size, context, context, seed, start)

    def batch(ids: Tensor, chance: "np.random.Generator") -> MaskedBatch:
        corrupted, asked = mask_tokens(
            ids,
            mask_id=mask_id,
            vocab_size=vocab_size,
            special_ids=special_ids,
            generator=torch.Generator().manual_seed(int(chance.integers(2**63))),
            probability=probability,
        )
        return MaskedBatch(corrupted, asked)

    return itertools.starmap(batch, draws)


def _windows(
    stream: Stream, rows: int, context: int, length: int, seed: int, start: int
) -> Iterator[tuple[Tensor, "np.random.Generator"]]:
    """Yield windows (B, length), each time with the source of chance that drew them."""
    check_positive(batch_size=rows, context=context)
    check_at_least_0(seed=seed, start=start)
    array = stream.numpy() if isinstance(stream, Tensor) else stream
    if array.ndim != 1 or len(array) < length:
        raise ValueError(
            f"stream must be ids (N,) with N at least {length}, not {array.shape}"
        )

    def windows(number: int) -> tuple[Tensor, "np.random.Generator"]:
        chance = np.random.default_rng((seed, number))  # no earlier batch is needed
        places = chance.integers(len(array) - length + 1, size=rows).tolist()
        found = np.stack([array[place : place + length] for place in places])
        return torch.from_numpy(found.astype(np.int64)), chance

    return map(windows, itertools.count(start))
