"""The vocabulary of a run: made once, kept in its folder, and read from there."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tformer.data.bpe import BytePairVocabulary
from tformer.data.saved_vocabulary import (
    vocabulary_digest,
    vocabulary_from_json,
    vocabulary_to_json,
)
from tformer.data.vocabulary import CharacterVocabulary, Vocabulary
from tformer.files import sha256_of, write_json
from tformer.runs.folder import RunError, read_own_json
from tformer.runs.presets import OWN_FILES
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS


def run_vocabulary(settings: RunSettings, folder: Path) -> tuple[Vocabulary, int]:
    """Read the vocabulary of a run that has begun, and how many tokens its model has.

    Raises:
        RunError: it is missing, or damaged.
    """
    if settings.task in OWN_FILES:
        vocabulary = kept_vocabulary(folder)
    else:
        vocabulary = TASKS[settings.task].vocabulary()
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
    path = folder / "data/vocabulary.json"
    path.parent.mkdir(exist_ok=True)
    digests = {file: sha256_of(file) for file in files}
    saved = vocabulary_to_json(vocabulary)
    write_json(path, {"vocabulary": saved, "sha256_of_files": digests})


def kept_vocabulary(folder: Path, *, files: Sequence[str] = ()) -> Vocabulary:
    """Read the vocabulary, and hold files to what they were when it was made."""
    values = read_own_json(
        folder / "data/vocabulary.json", vocabulary=dict, sha256_of_files=dict
    )
    for file in files:  # which may lie elsewhere now
        if sha256_of(file) not in values["sha256_of_files"].values():
            raise RunError(f"{file} has changed since the run in {folder} began")
    return vocabulary_from_json(values["vocabulary"])
