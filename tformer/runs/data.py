"""The data of a run: drawn from a task, or read from somebody's own files."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

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
from tformer.data.windows import text_batches
from tformer.files import read_json, sha256_of, unchanged, write_json
from tformer.runs.batches import (
    Pairs,
    RunData,
    hidden_windows,
    hiding,
    pairs_in_order,
    windows_in_order,
)
from tformer.runs.folder import RunError, writing
from tformer.runs.rules import OWN_FILES
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.training.processes import process_rank, wait_for_all


def run_data(settings: RunSettings, folder: Path) -> RunData:
    """Draw or read the data of a run: always the same for the same settings.

    What is made of own files is kept in the folder of the run.

    Raises:
        OSError: a file is missing.
        ValueError: a file is faulty, or has changed since the run began or while it
            was read; a text is longer than `max_len`; there are too few; or the folder
            cannot be written to.
    """
    if settings.task not in OWN_FILES:
        return task_data(settings)
    read = text_data if settings.task == "text" else own_pairs_data
    return read(settings, folder)


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
    batches = partial(
        batches_of_pairs,
        vocabulary,
        splits["train"],
        batch_size=None if s.batch_tokens else s.batch_size,
        batch_tokens=s.batch_tokens,
        seed=s.seed,
    )
    return RunData(
        vocabulary=vocabulary,
        vocab_size=len(vocabulary),
        batches=lambda start: batches(start=start),
        validation=pairs_in_order(vocabulary, splits["validation"]),
        test=pairs_in_order(vocabulary, splits["test"]),
        validation_pairs=splits["validation"],
        test_pairs=splits["test"],
        max_target_len=max_target_len,
        digest=digest,
    )


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
        keep_vocabulary(vocabulary, folder, {})
        with writing(folder):
            write_token_stream(s.files[0], tokens, vocabulary)
    wait_for_all()
    seen = tokens.stat()
    vocabulary = kept_vocabulary(folder, {})
    train, rest = split_by_position(open_token_stream(tokens, vocabulary))
    if min(len(train), len(rest)) <= s.max_len:
        raise RunError(
            f"{s.files[0]} has {len(train) + len(rest)} tokens: too few for "
            f"windows of {s.max_len} in its last tenth; a smaller max_len may do"
        )

    def check(whole: bool) -> None:
        if not unchanged(tokens, seen):
            raise RunError(f"{tokens} was changed while the run read it")
        if whole and process_rank() == 0:
            open_token_stream(tokens, verify=True)

    hides = s.model == "bert"
    drawn = hiding(vocabulary) if hides else text_batches
    sizes = {"batch_size": s.batch_size, "context": s.max_len, "seed": s.seed}
    counts = (s.evaluate_examples, s.test_examples)
    if hides:
        looks = [hidden_windows(rest, vocabulary, s.max_len, n) for n in counts]
    else:
        looks = [[*windows_in_order(rest, s.max_len, n)] for n in counts]
    rows = (row for batch in looks[1] for row in batch.targets.tolist())
    return RunData(
        vocabulary=vocabulary,
        vocab_size=len(vocabulary) + hides,
        batches=lambda start: drawn(train, start=start, **sizes),
        validation=looks[0],
        test=looks[1],
        test_bytes=0 if hides else sum(map(vocabulary.num_bytes, rows)),
        digest=digest_of(vocabulary, read_json(header)["sha256"]),
        check=check,
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
    digests = {file: sha256_of(file) for file in s.files}
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
    if process_rank() == 0 and not kept_at(folder).exists():
        texts = (f"{text}\n" for pair in splits["train"] for text in pair)
        if s.vocabulary == "characters":  # all must be known
            texts = (text for pairs in parts for pair in pairs for text in pair)
        keep_vocabulary(make_vocabulary(s, texts), folder, digests)
    wait_for_all()
    vocabulary = kept_vocabulary(folder, digests)
    for (source_path, target_path), pairs in zip(names, parts, strict=True):
        paths = {"source_path": source_path, "target_path": target_path}
        check_pairs(vocabulary, pairs, max_len=s.max_len, **paths)
    for file, digest in digests.items():
        if sha256_of(file) != digest:
            raise RunError(f"{file} has changed while it was read")
    splits["validation"] = splits["validation"][: s.evaluate_examples]
    splits["test"] = splits["test"][: s.test_examples]
    digest = digest_of(vocabulary, *(digests[file] for file in s.files))
    return pairs_data(s, vocabulary, splits, s.max_len, digest)


def run_vocabulary(settings: RunSettings, folder: Path) -> tuple[Vocabulary, int]:
    """Read the vocabulary of a run that has begun; count the tokens of its model."""
    task = TASKS.get(settings.task)
    vocabulary = kept_vocabulary(folder, {}) if task is None else task.vocabulary()
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


def kept_at(folder: Path) -> Path:
    """Name the file of the vocabulary of own files, in the folder of the run."""
    return folder / "data/vocabulary.json"


def keep_vocabulary(
    vocabulary: Vocabulary, folder: Path, digests: Mapping[str, str]
) -> None:
    """Write the vocabulary down, and the hashes of the files that it was made of."""
    saved = vocabulary_to_json(vocabulary)
    with writing(folder):
        kept_at(folder).parent.mkdir(exist_ok=True)
        write_json(kept_at(folder), {"vocabulary": saved, "sha256_of_files": digests})


def kept_vocabulary(folder: Path, digests: Mapping[str, str]) -> Vocabulary:
    """Read the vocabulary, and hold files to what they were when it was made."""
    types = {"vocabulary": dict, "sha256_of_files": dict}
    values = read_json(kept_at(folder), types=types)
    for file, digest in digests.items():  # which may lie elsewhere now
        if digest not in values["sha256_of_files"].values():
            raise RunError(f"{file} has changed since the run in {folder} began")
    return vocabulary_from_json(values["vocabulary"])
