"""The data of a run: drawn from a task, or read from somebody's own files."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tformer.data.bpe import BytePairVocabulary
from tformer.data.pairs import SPLITS, Pair, check_pairs, read_pairs, split_pairs
from tformer.data.saved_vocabulary import (
    vocabulary_digest,
    vocabulary_from_json,
    vocabulary_to_json,
)
from tformer.data.text_files import read_pieces, split_by_position
from tformer.data.token_stream import open_token_stream, write_token_stream
from tformer.data.vocabulary import CharacterVocabulary, Vocabulary
from tformer.data.windows import masked_batches, text_batches
from tformer.files import sha256_of, unchanged, write_json
from tformer.runs.batches import (
    RunData,
    hidden_windows,
    hiding,
    pairs_data,
    windows_in_order,
)
from tformer.runs.folder import RunError, in_words, read_own_json
from tformer.runs.rules import OWN_FILES
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.training.processes import process_rank, wait_for_all

KEPT = "data/vocabulary.json"  # of own files, in the folder of the run


def run_data(settings: RunSettings, folder: Path) -> RunData:
    """Draw or read the data of a run: always the same for the same settings.

    Args:
        settings: of the run.
        folder: of the run, where what is made of own files is kept.

    Raises:
        RunError: a file is missing, faulty, or has changed since the run began or
            while it was read; a text is longer than `max_len`; or there are too few.
    """
    if settings.task not in OWN_FILES:
        return task_data(settings)
    read = text_data if settings.task == "text" else own_pairs_data
    try:
        return read(settings, folder)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.strerror and error.filename is None:
            why = f"{folder} cannot be written to: {error.strerror}"  # a full disk
            raise RunError(why) from error
        raise RunError(in_words(error)) from error


def task_data(settings: RunSettings) -> RunData:
    """Draw pairs of a task."""
    s, task = settings, TASKS[settings.task]
    longest = max(task.max_source_len, task.max_target_len) + 1  # and the end token
    if s.max_len < longest:
        raise RunError(
            f"max_len ({s.max_len}) must be at least {longest} for {s.task}: so many "
            "tokens has its longest text"
        )
    drawn = {
        "train": task.pairs("train", s.examples, s.seed),
        # The same for all seeds, so that runs can be compared.
        "validation": task.pairs("validation", s.evaluate_examples, 0),
        "test": task.pairs("test", s.test_examples, 0),
    }
    length = task.max_target_len + 1
    return pairs_data(s, task.vocabulary(), drawn, max_target_len=length)


def text_data(settings: RunSettings, folder: Path) -> RunData:
    """Read a text: its first 90 % to train on, the rest to validate and test with.

    The run keeps the text as ids, in a file that is mapped and not loaded, so that it
    may be larger than memory, and is no longer needed once the run has begun. The ids
    are held to their hash when a run goes on and when it ends; at each checkpoint the
    time of the last change is looked at.
    """
    s, tokens = settings, folder / "data/tokens.bin"
    header = tokens.with_name("tokens.bin.json")
    if process_rank() == 0 and header.exists():
        # A resumed run reads them all once, to see that none was changed.
        open_token_stream(tokens, verify=True)
    elif process_rank() == 0:
        whole = s.vocabulary == "characters"  # all must be known
        pieces = read_pieces(s.files[0]) if whole else _beginning(s.files[0])
        vocabulary = make_vocabulary(s, pieces)
        keep_vocabulary(vocabulary, folder)
        write_token_stream(s.files[0], tokens, vocabulary)
    wait_for_all()
    seen = tokens.stat()
    vocabulary = kept_vocabulary(folder)
    train, rest = split_by_position(open_token_stream(tokens, vocabulary))
    if min(len(train), len(rest)) <= s.max_len:
        raise RunError(
            f"{s.files[0]} has {len(train) + len(rest)} tokens: too few for "
            f"windows of {s.max_len} in its last tenth; a smaller max_len may do"
        )

    def check(whole: bool) -> None:
        try:
            if not unchanged(tokens, seen):
                raise RunError(f"{tokens} was changed while the run read it")
            if whole and process_rank() == 0:
                open_token_stream(tokens, verify=True)
        except (OSError, ValueError) as error:
            raise RunError(str(error)) from error

    sizes: dict[str, Any] = {"batch_size": s.batch_size, "context": s.max_len}
    sizes |= {"seed": s.seed}
    common: dict[str, Any] = {
        "vocabulary": vocabulary,
        "digest": digest_of(vocabulary, read_own_json(header, sha256=str)["sha256"]),
        "check": check,
    }
    if s.model == "bert":
        return RunData(
            vocab_size=len(vocabulary) + 1,
            batches=lambda start: masked_batches(
                train, start=start, **sizes, **hiding(vocabulary)
            ),
            validation=hidden_windows(rest, vocabulary, s.max_len, s.evaluate_examples),
            test=hidden_windows(rest, vocabulary, s.max_len, s.test_examples),
            **common,
        )
    test = windows_in_order(rest, s.max_len, s.test_examples)
    rows = (row for batch in test for row in batch.targets.tolist())
    return RunData(
        vocab_size=len(vocabulary),
        batches=lambda start: text_batches(train, start=start, **sizes),
        validation=windows_in_order(rest, s.max_len, s.evaluate_examples),
        test=test,
        test_bytes=sum(map(vocabulary.num_bytes, rows)),
        **common,
    )


def _beginning(file: str, fraction: float = 0.9) -> Iterator[str]:
    """Read what is trained on: pieces of words are not learned from the test."""
    # Of the text as it is read: line ends of two bytes, which count once, are gone.
    left = int(fraction * sum(len(piece.encode()) for piece in read_pieces(file)))
    for piece in read_pieces(file):
        data = piece.encode()
        yield data[:left].decode(errors="ignore")
        left -= len(data)
        if left <= 0:
            return


def own_pairs_data(settings: RunSettings, folder: Path) -> RunData:
    """Read two parallel files, or two of each split, all once and into memory.

    Of two files a hash of each source says in which split it is. Of six the splits are
    what the files say.
    """
    s = settings
    digests = [sha256_of(file) for file in s.files]
    parts = [
        (names, read_pairs(*names))
        for names in zip(s.files[::2], s.files[1::2], strict=True)
    ]
    splits = _splits(parts)
    if process_rank() == 0 and not (folder / KEPT).exists():
        texts = (f"{text}\n" for pair in splits["train"] for text in pair)
        if s.vocabulary == "characters":  # all must be known
            texts = (text for _, pairs in parts for pair in pairs for text in pair)
        keep_vocabulary(make_vocabulary(s, texts), folder, files=s.files)
    wait_for_all()
    vocabulary = kept_vocabulary(folder, files=s.files)
    for (source_path, target_path), pairs in parts:
        names = {"source_path": source_path, "target_path": target_path}
        check_pairs(vocabulary, pairs, max_len=s.max_len, **names)
    for file, digest in zip(s.files, digests, strict=True):
        if sha256_of(file) != digest:
            raise RunError(f"{file} has changed while it was read")
    validation = splits["validation"][: s.evaluate_examples]
    test = splits["test"][: s.test_examples]
    drawn = {"train": splits["train"], "validation": validation, "test": test}
    digest = digest_of(vocabulary, *digests)
    return pairs_data(s, vocabulary, drawn, max_target_len=s.max_len, digest=digest)


def _splits(
    parts: Sequence[tuple[tuple[str, str], list[Pair]]],
) -> dict[str, list[Pair]]:
    """Say which pairs are for training, for validation and for the test."""
    if len(parts) == len(SPLITS):
        return {split: pairs for split, (_, pairs) in zip(SPLITS, parts, strict=True)}
    ((names, pairs),) = parts
    splits = split_pairs(pairs)
    if not all(splits.values()):
        raise RunError(
            f"{names[0]} has {len({source for source, _ in pairs})} different "
            "lines: too few to leave some for the validation and some for the test"
        )
    return splits


def run_vocabulary(settings: RunSettings, folder: Path) -> tuple[Vocabulary, int]:
    """Read the vocabulary of a run that has begun, and how many tokens its model has.

    Raises:
        RunError: it is missing, or damaged.
    """
    own = settings.task in OWN_FILES
    vocabulary = kept_vocabulary(folder) if own else TASKS[settings.task].vocabulary()
    return vocabulary, len(vocabulary) + (settings.model == "bert")


def digest_of(vocabulary: Vocabulary, *digests: str) -> str:
    """Make one hash of those of the files and that of the vocabulary."""
    parts = " ".join((vocabulary_digest(vocabulary), *digests))
    return hashlib.sha256(parts.encode()).hexdigest()


def make_vocabulary(settings: RunSettings, texts: Iterable[str]) -> Vocabulary:
    """Make the vocabulary that a run asks for, from what it learns from."""
    if settings.vocabulary == "bpe":
        return BytePairVocabulary.train(texts, vocab_size=settings.vocab_size)
    return CharacterVocabulary.of(texts)


def keep_vocabulary(
    vocabulary: Vocabulary, folder: Path, *, files: Sequence[str] = ()
) -> None:
    """Write the vocabulary down, and what the files were like when it was made."""
    path = folder / KEPT
    path.parent.mkdir(exist_ok=True)
    digests = {file: sha256_of(file) for file in files}
    saved = vocabulary_to_json(vocabulary)
    write_json(path, {"vocabulary": saved, "sha256_of_files": digests})


def kept_vocabulary(folder: Path, *, files: Sequence[str] = ()) -> Vocabulary:
    """Read the vocabulary, and hold files to what they were when it was made."""
    values = read_own_json(folder / KEPT, vocabulary=dict, sha256_of_files=dict)
    for file in files:  # which may lie elsewhere now
        if sha256_of(file) not in values["sha256_of_files"].values():
            raise RunError(f"{file} has changed since the run in {folder} began")
    return vocabulary_from_json(values["vocabulary"])
