"""Text files as people have them, read with care: an error names the line.

A file is UTF-8. What is changed on the way in: a byte order mark at the beginning is
dropped; line ends of Windows and of old Macs become newlines; letters are composed
(NFC), so that é is one character however it was typed. Nothing else is.
"""

import codecs
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.unsignedinteger]  # (N,)
PIECE_BYTES = 2**18  # of a file are read at a time


def clean_text(text: str) -> str:
    """Make line ends newlines, and compose letters (NFC): what files go through.

    Whoever asks a model that was trained on a file must send the question through the
    same. Pieces cut at line ends give what the whole text gives.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", text)


def read_pieces(path: str | Path, *, piece_bytes: int = PIECE_BYTES) -> Iterator[str]:
    """Read a text in pieces, each but the last ending with a newline.

    Only a piece of about `piece_bytes` is held in memory, or the longest line, if that
    is larger. Each is as `clean_text` leaves it.

    Raises:
        OSError: there is no such file, or it is a directory.
        ValueError: the file is empty; a byte is not UTF-8, or is NUL. The message has
            the line, and the place in it, both counted from 1.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, not a text file")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    line = 1
    waiting: list[bytes] = []  # blocks of a line whose end has not come
    with path.open("rb") as file:
        while block := file.read(piece_bytes):
            before, newline, after = block.rpartition(b"\n")
            if not newline:
                waiting.append(block)
                continue
            piece = b"".join((*waiting, before, newline))
            waiting = [after]
            yield decode_text(piece, path, line)
            line += sum(map(piece.count, (b"\n", b"\r"))) - piece.count(b"\r\n")
    rest = b"".join(waiting)
    if line == 1 and not rest.removeprefix(_BOM):
        raise ValueError(f"{path} is empty")
    if rest:
        yield decode_text(rest, path, line)


_BOM = codecs.BOM_UTF8


def decode_text(data: bytes, path: str | Path, line: int = 1) -> str:
    """Decode whole lines, the first of this number, as `read_pieces` does."""
    if line == 1:
        data = data.removeprefix(_BOM)
    # In UTF-8 these two bytes are never parts of another character.
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
        what = f"(0x{data[at]:02x}) is not UTF-8 ({error.reason})"
    else:
        if (at := data.find(b"\0")) < 0:
            return clean_text(text)
        what = "(NUL): this is no text"
    line += data.count(b"\n", 0, at)
    byte = at - data.rfind(b"\n", 0, at)
    raise ValueError(f"{path}, line {line}: byte {byte} {what}")


def read_text(path: str | Path) -> str:
    """Read a text as a whole, as `read_pieces` does in pieces."""
    return "".join(read_pieces(path))


def split_by_position(text: Ids) -> tuple[Ids, Ids]:
    """Cut a text's ids in two: 90 % to train on, the end to validate with.

    As nanoGPT does. Windows drawn at random would overlap with those of the training,
    and the validation would ask for what was learned by heart.
    """
    cut = int(len(text) * 0.9)
    if not 0 < cut < len(text):
        raise ValueError(f"a text of {len(text)} cannot be cut in two at 90%")
    return text[:cut], text[cut:]
