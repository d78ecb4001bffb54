"""A text as ids in a file: for texts that are larger than memory.

Beside the ids lies a header in JSON, which says how many there are, of which type, and
of which vocabulary. The file is mapped, not loaded: what is not looked at is not read.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tformer.data.bpe import vocabulary_digest
from tformer.data.text_files import read_pieces
from tformer.data.vocabulary import Vocabulary
from tformer.files import (
    beside,
    open_new,
    read_json,
    sha256_of,
    wait_for_disk,
    write_json_beside,
)

FORMAT = "tformer tokens, version 1"
DTYPES = {"uint16": "<u2", "uint32": "<u4"}  # the byte order does not change with it
HEADER_TYPES = {"tokens": int, "dtype": str, "vocabulary": str, "sha256": str}


def write_token_stream(
    text_path: str | Path, path: str | Path, vocabulary: Vocabulary
) -> int:
    """Encode a text file piece by piece into a file of ids; return how many.

    Both files, of which the header gets ".json" on top of the path, are written under
    other names and then renamed, so a process that is killed leaves no half file that
    could be taken for a whole one. Ids take two bytes each if the vocabulary has at
    most 65,536, else four.

    Raises:
        OSError: a file is missing, or the disk is full; nothing is left behind.
        ValueError: the text is no text, or has an unknown character; the message has
            the file and, where it is one character or byte, the line.
    """
    path, header_path = _paths(path)
    new, new_header = beside(path), beside(header_path)
    name = "uint16" if len(vocabulary) <= 2**16 else "uint32"
    tokens, digest, line = 0, hashlib.sha256(), 1
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open_new(new) as file:
            for piece in read_pieces(text_path):
                try:
                    ids = vocabulary.encode(piece)
                except ValueError:
                    error = unknown_character(vocabulary, text_path, piece, line)
                    raise error from None
                data = np.array(ids, dtype=DTYPES[name]).tobytes()
                digest.update(data)
                file.write(data)
                tokens += len(ids)
                line += piece.count("\n")
        wait_for_disk(new)
        header = {
            "format": FORMAT,
            "tokens": tokens,
            "dtype": name,
            "vocabulary": vocabulary_digest(vocabulary),
            "sha256": digest.hexdigest(),
        }
        write_json_beside(header_path, header)
        # No header may ever describe other ids: none is better, for a moment.
        header_path.unlink(missing_ok=True)
        os.replace(new, path)
        os.replace(new_header, header_path)
        wait_for_disk(path.parent)
    except BaseException:
        new.unlink(missing_ok=True)
        new_header.unlink(missing_ok=True)
        raise
    return tokens


def unknown_character(
    vocabulary: Vocabulary, text_path: str | Path, piece: str, line: int = 1
) -> ValueError:
    """Make the error that names the line; the piece begins with this one."""
    for number, text in enumerate(piece.split("\n"), line):
        try:
            vocabulary.encode(text)
        except ValueError as error:
            return ValueError(f"{text_path}, line {number}: {error}")
    return ValueError(f"{text_path}: the vocabulary has no newline")


def open_token_stream(
    path: str | Path, vocabulary: Vocabulary | None = None, *, verify: bool = False
) -> npt.NDArray[np.unsignedinteger]:
    """Map a file of ids, uint16 or uint32 (N,), into memory, read-only.

    To `verify`, the whole file is read and its sha256 compared too.

    Raises:
        FileNotFoundError: the file or its header is missing.
        ValueError: the file is truncated or too long, changed, of another vocabulary,
            or the header is none. The message names the file and what is wrong.
    """
    path, header_path = _paths(path)
    for each in (path, header_path):
        if not each.exists():
            raise FileNotFoundError(f"{each}: no such file")
    header = read_json(header_path, format=FORMAT, types=HEADER_TYPES)
    if header["dtype"] not in DTYPES or header["tokens"] < 1:
        what = f"{header['tokens']} tokens of {header['dtype']!r}"
        raise ValueError(f"{header_path}: {what} cannot be")
    dtype = np.dtype(DTYPES[header["dtype"]])
    size, expected = path.stat().st_size, header["tokens"] * dtype.itemsize
    if size != expected:
        wrong = "truncated" if size < expected else "too long"
        raise ValueError(f"{path} is {wrong}: {size} bytes, not {expected}")
    if vocabulary is not None and vocabulary_digest(vocabulary) != header["vocabulary"]:
        raise ValueError(f"{path} was written with another vocabulary")
    if verify and (digest := sha256_of(path)) != header["sha256"]:
        raise ValueError(f"{path} was changed: its sha256 is {digest}")
    return np.memmap(path, dtype=dtype, mode="r")


def _paths(path: str | Path) -> tuple[Path, Path]:
    path = Path(path)
    return path, path.with_name(f"{path.name}.json")
