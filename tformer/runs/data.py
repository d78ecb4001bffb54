"""The data of a run: drawn from a task, or read from somebody's own files."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from tformer.data.batch import Batch, PairBatch, TextBatch
from tformer.data.batches import batches_of_pairs
from tformer.data.bpe import (
    BytePairVocabulary,
    vocabulary_digest,
    vocabulary_from_json,
    vocabulary_to_json,
)
from tformer.data.pairs import SPLITS, check_pairs, read_pairs, split_pairs
from tformer.data.text_files import read_pieces, split_by_position
from tformer.data.token_stream import open_token_stream, write_token_stream
from tformer.data.vocabulary import CharacterVocabulary, Vocabulary
from tformer.data.windows import masked_batches, text_batches
from tformer.files import read_json, sha256_of, write_json
from tformer.runs.folder import RunError
from tformer.runs.rules import OWN_FILES
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.training.processes import process_rank, wait_for_all

Pairs = Sequence[tuple[str, str]]
Stream = Sequence[int] | npt.NDArray[np.integer]
PAIRS_IN_A_BATCH, WINDOWS_IN_A_BATCH = 256, 64


@dataclass(frozen=True, kw_only=True)
class RunData:
    """What a run reads."""

    vocabulary: Vocabulary
    batches: Callable[[int], Iterator[Batch]]  # those after so many steps
    validation: Sequence[Batch]  # for the loss, while the run goes on
    test: Sequence[Batch]  # for the loss, at its end
    validation_pairs: Pairs = ()  # to be decoded
    test_pairs: Pairs = ()
    max_target_len: int = 0  # tokens, the end token included
    digest: str = ""  # of own files, as ids: a run goes on with the same ones only


VOCABULARY = "data/vocabulary.json"  # of own files, in the folder of the run


def run_data(settings: RunSettings, folder: Path) -> RunData:
    """Draw or read the data of a run: always the same for the same settings.

    What is made of own files is kept in the folder. An OSError says that a file is
    missing; a ValueError that it is faulty, or has too few or too long texts.
    """
    if settings.task not in OWN_FILES:
        return task_data(settings)
    return (text_data if settings.task == "text" else own_pairs_data)(settings, folder)


def task_data(settings: RunSettings) -> RunData:
    """Draw pairs of a task."""
    s, task = settings, TASKS[settings.task]
    longest = max(task.max_source_len, task.max_target_len) + 1  # and the end token
    if s.max_len < longest:
        raise RunError(
            f"max_len ({s.max_len}) must be at least {longest}, the tokens of the "
            f"longest text of {s.task}"
        )
    drawn = {
        "train": task.pairs("train", s.examples, s.seed),
        # The same for all seeds, so that runs can be compared.
        "validation": task.pairs("validation", s.evaluate_examples, 0),
        "test": task.pairs("test", s.test_examples, 0),
    }
    return pairs_data(s, task.vocabulary(), drawn, task.max_target_len + 1)


def pairs_data(
    settings: RunSettings,
    vocabulary: Vocabulary,
    splits: Mapping[str, Pairs],
    max_target_len: int,
    digest: str = "",
) -> RunData:
    """Make the data of a run from pairs: those of the splits, in this vocabulary."""
    s = settings
    return RunData(
        vocabulary=vocabulary,
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


def text_data(settings: RunSettings, folder: Path) -> RunData:
    """Read a text: its first 90 % to train on, the rest to validate and test with.

    The run keeps it as ids, in a file that is mapped and may be larger than memory.
    """
    s, tokens = settings, folder / "data/tokens.bin"
    header = tokens.with_name("tokens.bin.json")
    if process_rank() == 0 and header.exists():
        # A resumed run reads them all once, to see that none was changed.
        open_token_stream(tokens, verify=True)
    elif process_rank() == 0:
        whole = s.vocabulary == "characters"  # all must be known
        pieces = read_pieces(s.files[0]) if whole else _beginning(s.files[0])
        vocabulary = keep_vocabulary(s, pieces, folder)
        write_token_stream(s.files[0], tokens, vocabulary)
    wait_for_all()
    vocabulary = run_vocabulary(s, folder)
    train, rest = split_by_position(open_token_stream(tokens, vocabulary))
    if min(len(train), len(rest)) <= s.max_len:
        raise RunError(
            f"{s.files[0]} has {len(train) + len(rest)} tokens: too few for windows "
            f"of {s.max_len} in its last tenth"
        )
    hides = s.model == "bert"
    drawn = hiding(vocabulary) if hides else text_batches
    look = partial(hidden_windows, vocabulary) if hides else windows_in_order
    sizes = {"batch_size": s.batch_size, "context": s.max_len, "seed": s.seed}
    return RunData(
        vocabulary=vocabulary,
        batches=lambda start: drawn(train, start=start, **sizes),
        validation=look(rest, s.max_len, s.evaluate_examples),
        test=look(rest, s.max_len, s.test_examples),
        digest=_digest(vocabulary, read_json(header)["sha256"]),
    )


def _beginning(file: str) -> Iterator[str]:
    """Read what is trained on: pieces of words are not learned from the test."""
    # Of the text as it is read: line ends of two bytes, which count once, are gone.
    left = int(0.9 * sum(len(piece.encode()) for piece in read_pieces(file)))
    for piece in read_pieces(file):
        data = piece.encode()
        yield data[: max(0, left)].decode(errors="ignore")
        left -= len(data)


def own_pairs_data(settings: RunSettings, folder: Path) -> RunData:
    """Read two parallel files, which `split_pairs` deals out, or two of each split."""
    s = settings
    digests = [sha256_of(file) for file in s.files]
    names = list(zip(s.files[::2], s.files[1::2], strict=True))
    parts = [read_pairs(*each) for each in names]
    splits = dict(zip(SPLITS, parts, strict=False))
    if len(parts) == 1:
        splits = split_pairs(parts[0])
    if not all(splits.values()):
        raise RunError(
            f"{s.files[0]} has {len({source for source, _ in parts[0]})} different "
            "lines: too few to leave some for the validation and some for the test"
        )
    if process_rank() == 0 and not (folder / VOCABULARY).exists():
        texts = (f"{text}\n" for pair in splits["train"] for text in pair)
        if s.vocabulary == "characters":  # all must be known
            texts = (text for pairs in parts for pair in pairs for text in pair)
        keep_vocabulary(s, texts, folder)
    wait_for_all()
    vocabulary = run_vocabulary(s, folder)
    for (source_path, target_path), pairs in zip(names, parts, strict=True):
        paths = {"source_path": source_path, "target_path": target_path}
        check_pairs(vocabulary, pairs, max_len=s.max_len, **paths)
    splits["validation"] = splits["validation"][: s.evaluate_examples]
    splits["test"] = splits["test"][: s.test_examples]
    return pairs_data(s, vocabulary, splits, s.max_len, _digest(vocabulary, *digests))


def run_vocabulary(settings: RunSettings, folder: Path) -> Vocabulary:
    """Read the vocabulary of a run that has begun."""
    if settings.task in TASKS:
        return TASKS[settings.task].vocabulary()
    kept = read_json(folder / VOCABULARY, types={"vocabulary": dict})["vocabulary"]
    return vocabulary_from_json(kept)


def _digest(vocabulary: Vocabulary, *files: str) -> str:
    """Make one hash of those of the files and that of the vocabulary."""
    parts = " ".join((vocabulary_digest(vocabulary), *files))
    return hashlib.sha256(parts.encode()).hexdigest()


def keep_vocabulary(
    settings: RunSettings, texts: Iterable[str], folder: Path
) -> Vocabulary:
    """Make the vocabulary that a run asks for, from what it learns from; keep it."""
    if settings.vocabulary == "bpe":
        size = settings.vocab_size
        vocabulary: Vocabulary = BytePairVocabulary.train(texts, vocab_size=size)
    else:
        vocabulary = CharacterVocabulary.of(texts)
    (folder / "data").mkdir(exist_ok=True)
    write_json(folder / VOCABULARY, {"vocabulary": vocabulary_to_json(vocabulary)})
    return vocabulary


def pairs_in_order(vocabulary: Vocabulary, pairs: Pairs) -> list[PairBatch]:
    """Put pairs into batches, each once and in the order in which they come."""
    batches = []
    for first in range(0, len(pairs), PAIRS_IN_A_BATCH):
        sources, targets = zip(*pairs[first : first + PAIRS_IN_A_BATCH], strict=True)
        src = vocabulary.encode_batch(sources, eos=True)
        tgt = vocabulary.encode_batch(targets, bos=True, eos=True)
        batches.append(PairBatch(src, tgt))
    return batches


def windows_in_order(stream: Stream, context: int, most: int) -> list[TextBatch]:
    """Cut a text into windows side by side; each target is asked for once."""
    whole = (len(stream) - 1) // context
    # Over the whole text, if there are more than are wanted.
    places = np.linspace(0, whole - 1, min(most, whole)).astype(int)
    rows = [stream[i * context : (i + 1) * context + 1] for i in places]
    ids = torch.from_numpy(np.stack(rows).astype(np.int64))
    return [TextBatch(part) for part in torch.split(ids, WINDOWS_IN_A_BATCH)]


def hidden_windows(
    vocabulary: Vocabulary, stream: Stream, context: int, count: int
) -> list[Batch]:
    """Draw about so many windows of a text with hidden tokens, always the same ones."""
    sizes = {"batch_size": WINDOWS_IN_A_BATCH, "context": context, "seed": 0}
    batches = hiding(vocabulary)(np.asarray(stream), **sizes)
    return list(itertools.islice(batches, max(1, count // WINDOWS_IN_A_BATCH)))


def hiding(vocabulary: Vocabulary) -> Callable[..., Iterator[Batch]]:
    """Return `masked_batches` that hides by one token more than the vocabulary has."""
    size, v = len(vocabulary), vocabulary
    special = (v.pad_id, v.bos_id, v.eos_id)  # are never hidden
    return partial(masked_batches, mask_id=size, vocab_size=size, special_ids=special)
