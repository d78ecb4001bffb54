"""Files that nobody prepared: read as they are meant, or refused with the line."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tformer.data.text_files import (
    clean_text,
    read_pieces,
    read_text,
    split_by_position,
)


@pytest.fixture
def write(tmp_path):
    def write(data: bytes):
        path = tmp_path / "text.txt"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"a\nb", "a\nb"),
        (b"\n", "\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\rb\r", "a\nb\n"),  # an old Mac's
        (b"\xef\xbb\xbfa\n", "a\n"),  # a byte order mark
        (b"a\n\xef\xbb\xbfb\n", "a\n\ufeffb\n"),  # which is none further down
        ("Cafe\u0301".encode(), "Café"),
        ("Ω".encode(), "Ω"),  # the sign of the unit, a Greek letter
        ("a\u2028b\x0bc\x85d\n".encode(), "a\u2028b\x0bc\x85d\n"),  # no line ends
        ("日本\n".encode(), "日本\n"),
    ],
)
def test_what_is_changed_and_what_is_not(write, data, text):
    assert read_text(write(data)) == text


@given(st.text(alphabet="ab é\u0301\n\r日", max_size=60), st.integers(1, 9))
def test_pieces_are_the_text(tmp_path_factory, text, piece_bytes):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_bytes(b"x" + text.encode())
    pieces = list(read_pieces(path, piece_bytes=piece_bytes))
    assert "".join(pieces) == clean_text("x" + text) == read_text(path)
    assert all(piece.endswith("\n") for piece in pieces[:-1])
    assert all(unicodedata.is_normalized("NFC", piece) for piece in pieces)


def test_pieces_are_small(write):
    path = write(b"word " * 5 + b"\n")
    path.write_bytes(path.read_bytes() * 1000)
    pieces = list(read_pieces(path, piece_bytes=300))
    assert max(map(len, pieces)) < 330
    assert len(pieces) > 80


@pytest.mark.parametrize("piece_bytes", [4, 2**18])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "{} is empty"),
        (b"\xef\xbb\xbf", "{} is empty"),
        (
            b"good\n\nba\xe9d\n",
            "{}, line 3: byte 3 (0xe9) is not UTF-8 (invalid continuation byte)",
        ),
        (
            b"one\r\ntwo\r\n\xff",
            "{}, line 3: byte 1 (0xff) is not UTF-8 (invalid start byte)",
        ),
        (
            b"one\rtwo\xc3",
            "{}, line 2: byte 4 (0xc3) is not UTF-8 (unexpected end of data)",
        ),
        (b"a\rb\r\nc\nd\r\ne\rf\ng\0\n", "{}, line 7: byte 2 (NUL): this is no text"),
        (b"one\nt\0wo\n", "{}, line 2: byte 2 (NUL): this is no text"),
        (
            "text".encode("utf-16"),
            "{}, line 1: byte 1 (0xff) is not UTF-8 (invalid start byte)",
        ),
    ],
)
def test_what_is_no_text_is_refused(write, raises, data, message, piece_bytes):
    path = write(data)
    with raises(ValueError, message.format(path)):
        list(read_pieces(path, piece_bytes=piece_bytes))


def test_what_is_no_file(tmp_path, raises):
    with raises(IsADirectoryError, f"{tmp_path} is a directory, not a text file"):
        read_text(tmp_path)
    with raises(FileNotFoundError, f"{tmp_path / 'no.txt'}: no such file"):
        read_text(tmp_path / "no.txt")


def test_the_end_is_for_validation_as_in_nanogpt(raises):
    text = np.arange(1_115_394)
    train, validation = split_by_position(text)
    assert len(train) == 1_003_854
    assert np.array_equal(np.concatenate((train, validation)), text)
    with raises(ValueError, "a text of 1 cannot be cut in two at 90%"):
        split_by_position(text[:1])
