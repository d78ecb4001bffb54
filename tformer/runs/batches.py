"""What a run reads, and batches of pairs and of windows of a text."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from tformer.data.batch import Batch, PairBatch, TextBatch
from tformer.data.vocabulary import Vocabulary
from tformer.data.windows import masked_batches

Pairs = Sequence[tuple[str, str]]
Stream = npt.NDArray[np.integer]
WINDOWS_IN_A_BATCH = 64


@dataclass(frozen=True, kw_only=True)
class RunData:
    """What a run reads."""

    vocabulary: Vocabulary
    vocab_size: int  # of the model: BERT has a token more, that hides others
    batches: Callable[[int], Iterator[Batch]]  # those after so many steps
    validation: Sequence[Batch]  # for the loss, while the run goes on
    test: Sequence[Batch]  # for the loss, at its end
    validation_pairs: Pairs = ()  # to be decoded
    test_pairs: Pairs = ()
    max_target_len: int = 0  # tokens, the end token included
    test_bytes: int = 0  # of a text: how long its test is in UTF-8
    digest: str = ""  # of own files, as ids: a run goes on with the same ones only
    # Raises if what is still read of files has changed; if True, reads all to see it.
    check: Callable[[bool], object] = lambda _: None


def pairs_in_order(
    vocabulary: Vocabulary, pairs: Pairs, *, batch_size: int = 256
) -> list[PairBatch]:
    """Put pairs into batches, each once and in the order in which they come."""
    batches = []
    for first in range(0, len(pairs), batch_size):
        sources, targets = zip(*pairs[first : first + batch_size], strict=True)
        src = vocabulary.encode_batch(sources, eos=True)
        tgt = vocabulary.encode_batch(targets, bos=True, eos=True)
        batches.append(PairBatch(src, tgt))
    return batches


def windows_in_order(
    stream: Sequence[int] | Stream, context: int, most: int
) -> list[TextBatch]:
    """Cut a text into windows side by side; each target is asked for once."""
    whole = (len(stream) - 1) // context
    # Spread over the whole text, if there are more than are wanted.
    places = np.linspace(0, whole - 1, min(most, whole)).astype(int)
    rows = [stream[i * context : (i + 1) * context + 1] for i in places]
    ids = torch.from_numpy(np.stack(rows).astype(np.int64))
    return [TextBatch(part) for part in torch.split(ids, WINDOWS_IN_A_BATCH)]


def hidden_windows(
    stream: Sequence[int] | Stream, vocabulary: Vocabulary, context: int, count: int
) -> list[Batch]:
    """Draw about so many windows of a text with hidden tokens, always the same ones."""
    batches = hiding(vocabulary)(
        np.asarray(stream), batch_size=WINDOWS_IN_A_BATCH, context=context, seed=0
    )
    return list(itertools.islice(batches, max(1, count // WINDOWS_IN_A_BATCH)))


def hiding(vocabulary: Vocabulary) -> Callable[..., Iterator[Batch]]:
    """Return `masked_batches` that hides by one token more than the vocabulary has."""
    size, v = len(vocabulary), vocabulary
    special = (v.pad_id, v.bos_id, v.eos_id)  # are never hidden
    return partial(masked_batches, mask_id=size, vocab_size=size, special_ids=special)
