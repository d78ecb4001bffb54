"""Windows of a long text as batches, for GPT and for BERT.

N tokens of the text · B windows in a batch · C context, the tokens of a window
"""

import itertools
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tformer.checks import check_at_least_0, check_positive
from tformer.data.batch import MaskedBatch, TextBatch
from tformer.data.masking import mask_tokens

Stream = Tensor | npt.NDArray[Any]


def text_batches(
    stream: Stream, *, batch_size: int, context: int, seed: int, start: int = 0
) -> Iterator[TextBatch]:
    """Yield windows of a long text without end, each from a place drawn at random.

    As nanoGPT does: places are drawn evenly and with replacement, so there are no
    passes, and two windows may overlap. Batch n depends on `seed` and n alone.

    Args:
        stream: the ids of the text, (N,): a tensor, an array, or a file opened by
            `open_token_stream`, of which only the windows are read.
        batch_size: windows in a batch.
        context: C, how many tokens the model reads; a window has one more.
        seed: of the places, at least 0.
        start: leave out so many batches.

    Yields:
        Batches of ids (B, C + 1).

    Raises:
        ValueError: a size is below 1, `seed` or `start` below 0, or the stream is not
            of one axis or has fewer than C + 1 tokens.
    """
    check_positive(batch_size=batch_size, context=context)
    check_at_least_0(seed=seed, start=start)
    array = _as_array(stream, context + 1)
    return (
        TextBatch(_windows(array, batch_size, context + 1, _draws(seed, number)))
        for number in itertools.count(start)
    )


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
    depends on `seed` and n alone.

    Args:
        stream: the ids of the text, as for `text_batches`.
        batch_size: windows in a batch.
        context: tokens in a window.
        mask_id: the id that stands in place of a hidden token.
        vocab_size: ids that may stand there by chance are below this.
        special_ids: never hidden, and never put in place of a token.
        seed: of places and masks, at least 0.
        start: leave out so many batches.
        probability: of asking for a token.

    Yields:
        Batches of ids (B, C).

    Raises:
        ValueError: as for `text_batches` and `mask_tokens`.
    """
    check_positive(batch_size=batch_size, context=context)
    check_at_least_0(seed=seed, start=start)
    array = _as_array(stream, context)

    def batch(number: int) -> MaskedBatch:
        draws = _draws(seed, number)
        ids = _windows(array, batch_size, context, draws)
        generator = torch.Generator().manual_seed(int(draws.integers(2**63)))
        corrupted, asked = mask_tokens(
            ids,
            mask_id=mask_id,
            vocab_size=vocab_size,
            special_ids=special_ids,
            generator=generator,
            probability=probability,
        )
        return MaskedBatch(corrupted, asked)

    return map(batch, itertools.count(start))


def _as_array(stream: Stream, needed: int) -> npt.NDArray[Any]:
    array = stream.numpy() if isinstance(stream, Tensor) else stream
    if array.ndim != 1 or len(array) < needed:
        raise ValueError(
            f"stream must be ids (N,) with N at least {needed}, not {array.shape}"
        )
    return array


def _draws(seed: int, number: int) -> "np.random.Generator":
    """Return a source of chance for one batch: no earlier batch need be drawn."""
    return np.random.default_rng((seed, number))


def _windows(
    array: npt.NDArray[Any], rows: int, length: int, draws: "np.random.Generator"
) -> Tensor:
    places = draws.integers(len(array) - length + 1, size=rows).tolist()
    windows = np.stack([array[place : place + length] for place in places])
    return torch.from_numpy(windows.astype(np.int64))  # (B, length)
