"""Pairs of texts: two parallel files, and how pairs are dealt out to the splits."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tformer.checks import check_positive
from tformer.data.text_files import read_text
from tformer.data.vocabulary import Vocabulary

SPLITS = ("train", "validation", "test")


class Pair(NamedTuple):
    """A text to read, and the text to write."""

    source: str
    target: str


def hash_split(item: str) -> str:
    """Say in which split an item is: 5 % in the test, 5 % in validation, by a hash.

    A hash is as even as chance, and the same on every machine and for every seed, so
    nothing wanders between "train", "validation" and "test".
    """
    digest = hashlib.blake2b(item.encode(), digest_size=8).digest()
    twentieth = int.from_bytes(digest, "big") % 20
    return {0: "test", 1: "validation"}.get(twentieth, "train")


def split_pairs(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Deal pairs out by `hash_split` of their sources; of few, a split may be empty."""
    splits: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    for pair in pairs:
        splits[hash_split(pair.source)].append(pair)
    return splits


def read_pairs(source_path: str | Path, target_path: str | Path) -> list[Pair]:
    """Read two parallel files: line n of one is translated by line n of the other.

    The spaces at both ends of a line are taken off.

    Raises:
        ValueError: a file is empty or no UTF-8 text, the numbers of lines differ, or a
            line is empty. The message has the file and the line, counted from 1.
    """
    sources, targets = _lines(source_path), _lines(target_path)
    if len(sources) != len(targets):
        raise ValueError(
            f"{source_path} has {len(sources)} lines but {target_path} has "
            f"{len(targets)}: line n of one must be the translation of line n of the "
            "other"
        )
    return [Pair(*texts) for texts in zip(sources, targets, strict=True)]


def _lines(path: str | Path) -> list[str]:
    text = read_text(path)
    # Not splitlines(): to it, rare characters in the middle of a line end it as well.
    lines = [line.strip() for line in text.removesuffix("\n").split("\n")]
    for number, line in enumerate(lines, 1):
        if not line:
            raise ValueError(f"{path}, line {number} is empty")
    return lines


def check_pairs(
    vocabulary: Vocabulary,
    pairs: Sequence[Pair],
    *,
    max_len: int,
    source_path: str | Path = "sources",
    target_path: str | Path = "targets",
) -> None:
    """Raise unless a model can read and write every pair.

    Raises:
        ValueError: a text has more than `max_len` tokens, the end token included, or an
            unknown character. The message has its path, and the line, counted from 1.
    """
    check_positive(max_len=max_len)
    for number, pair in enumerate(pairs, 1):
        for path, text in zip((source_path, target_path), pair, strict=True):
            try:
                length = len(vocabulary.encode(text, eos=True))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            if length > max_len:
                raise ValueError(
                    f"{path}, line {number} has {length} tokens, the end token "
                    f"included, but the model takes at most max_len ({max_len})"
                )
