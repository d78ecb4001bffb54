"""What a run reads."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tformer.data.batches import Batch, PairBatch, batches_of_pairs
from tformer.data.vocabulary import Vocabulary
from tformer.runs.settings import RunSettings

Pairs = Sequence[tuple[str, str]]


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


def pairs_data(
    settings: RunSettings,
    vocabulary: Vocabulary,
    splits: Mapping[str, Pairs],
    *,
    max_target_len: int,
    digest: str = "",
) -> RunData:
    """Make the data of a run from pairs.

    Args:
        settings: of the run.
        vocabulary: of both sides.
        splits: the pairs to train, to validate and to test with.
        max_target_len: tokens of a target, the end token included.
        digest: of the files, if they are somebody's own.
    """
    s = settings
    return RunData(
        vocabulary=vocabulary,
        vocab_size=len(vocabulary),
        batches=lambda start: batches_of_pairs(
            vocabulary,
            splits["train"],
            batch_size=None if s.batch_tokens else s.batch_size,
            batch_tokens=s.batch_tokens,
            seed=s.seed,
            start=start,
        ),
        validation=pairs_in_order(vocabulary, splits["validation"]),
        test=pairs_in_order(vocabulary, splits["test"]),
        validation_pairs=splits["validation"],
        test_pairs=splits["test"],
        max_target_len=max_target_len,
        digest=digest,
    )


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
