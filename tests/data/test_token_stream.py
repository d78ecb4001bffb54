"""A file of ids: the ids of the whole text, and no half file is taken for a whole."""

import json
import os
from functools import partial
from itertools import islice
from unittest.mock import Mock

import numpy as np
import pytest

from tformer.data import token_stream
from tformer.data.bpe import BytePairVocabulary
from tformer.data.text_files import read_pieces, read_text
from tformer.data.token_stream import open_token_stream, write_token_stream
from tformer.data.vocabulary import CharacterVocabulary
from tformer.data.windows import text_batches

LINES = ["The lowest of the low", "", "  were lower\tthan 日本 ", "é's", "\u2028x"]
TEXT = "\n".join(LINES[i * i % 5] + str(i) for i in range(4000)) + "\n\n\n"
CHARACTERS = CharacterVocabulary.of([TEXT])
BYTE_PAIRS = BytePairVocabulary.train([TEXT], vocab_size=400)


@pytest.fixture
def text_path(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def stream_path(tmp_path, text_path):
    path = tmp_path / "text.ids"
    write_token_stream(text_path, path, CHARACTERS)
    return path


@pytest.mark.parametrize("vocabulary", [CHARACTERS, BYTE_PAIRS])
@pytest.mark.parametrize("piece_bytes", [1, 97, 2**18])
def test_pieces_do_not_change_the_ids(
    tmp_path, text_path, vocabulary, monkeypatch, piece_bytes
):
    reading = partial(read_pieces, piece_bytes=piece_bytes)
    monkeypatch.setattr(token_stream, "read_pieces", reading)
    count = write_token_stream(text_path, tmp_path / "new" / "a.ids", vocabulary)
    ids = open_token_stream(tmp_path / "new" / "a.ids", vocabulary, verify=True)
    assert ids.tolist() == vocabulary.encode(read_text(text_path))
    assert len(ids) == count
    files = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert files == ["a.ids", "a.ids.json"]


def test_ids_take_as_many_bytes_as_they_need(tmp_path, text_path, stream_path):
    assert stream_path.stat().st_size == 2 * len(TEXT)
    characters = "".join(chr(i) for i in range(0x10000, 0x10000 + 70_000))
    large = CharacterVocabulary(characters + CHARACTERS.characters)
    write_token_stream(text_path, tmp_path / "large.ids", large)
    ids = open_token_stream(tmp_path / "large.ids", large)
    assert ids.dtype == np.uint32
    assert large.decode(ids[:1000].tolist()) == TEXT[:1000]


def test_windows_of_the_file_are_windows_of_the_text(stream_path):
    ids = open_token_stream(stream_path)
    assert isinstance(ids, np.memmap)
    options = {"batch_size": 3, "context": 20, "seed": 0}
    whole = np.array(CHARACTERS.encode(TEXT))
    ours, theirs = (islice(text_batches(x, **options), 20) for x in (ids, whole))
    for one, two in zip(ours, theirs, strict=True):
        assert one.ids.equal(two.ids)
        assert CHARACTERS.decode(one.ids[0].tolist()) in TEXT
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 5


def header(**changes):
    """Make a function that changes the header."""

    def change(path):
        file = path.with_name("text.ids.json")
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def first_id(path):
    with path.open("rb+") as file:
        file.write(b"\x07")
    open_token_stream(path)  # which is not read as a whole


SIZE = 2 * len(TEXT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path: os.truncate(path, SIZE - 1),
            f"text.ids is truncated: {SIZE - 1}",
        ),
        (lambda path: os.truncate(path, SIZE + 2), f"text.ids is too long: {SIZE + 2}"),
        (first_id, r"text.ids was changed: its sha256 is"),
        (
            header(format="other"),
            r"format \('other'\) must be 'tformer tokens, version 1'",
        ),
        (header(tokens="9"), r"tokens \('9'\) has a wrong type"),
        (header(dtype="object"), "tokens of 'object' cannot be"),
        (header(tokens=0), "0 tokens of 'uint16' cannot be"),
        (
            header(vocabulary="another's"),
            "text.ids was written with another vocabulary",
        ),
    ],
)
def test_what_was_changed_is_named(stream_path, change, message):
    open_token_stream(stream_path, CHARACTERS, verify=True)
    change(stream_path)
    with pytest.raises(ValueError, match=message):
        open_token_stream(stream_path, CHARACTERS, verify=True)


def test_missing_files(stream_path, raises):
    for path in (stream_path.with_name("text.ids.json"), stream_path):
        path.unlink()
        with raises(FileNotFoundError, f"{path}: no such file"):
            open_token_stream(stream_path)


def test_an_unknown_character_is_named_with_its_line(tmp_path, raises):
    path = tmp_path / "text.txt"
    path.write_text("abc\nab\nxbc\n")
    abc = CharacterVocabulary("abc\n")
    with pytest.raises(ValueError, match=r"text.txt, line 3: 'x' .* in 'xbc' is not"):
        write_token_stream(path, tmp_path / "a.ids", abc)
    with raises(ValueError, f"{path}: the vocabulary has no newline"):
        write_token_stream(path, tmp_path / "a.ids", CharacterVocabulary("abcx"))
    assert [p.name for p in tmp_path.iterdir()] == ["text.txt"]


class StopError(BaseException):
    """The process is killed."""


@pytest.mark.parametrize("moment", ["encode", "first replace", "second replace"])
def test_a_stop_at_any_moment_leaves_no_half_file(
    stream_path, tmp_path, monkeypatch, moment
):
    """The old file is whole, or its header is gone; never is one taken for another."""
    before = stream_path.read_bytes()
    other = tmp_path / "other.txt"
    other.write_text(TEXT[::-1], encoding="utf-8")
    stop = Mock(side_effect=StopError)
    with monkeypatch.context() as patch:
        if moment == "encode":
            patch.setattr(CHARACTERS, "encode", stop, raising=False)
        else:
            steps = [stop] if moment == "first replace" else [os.replace, stop]
            patch.setattr(os, "replace", lambda *paths: steps.pop(0)(*paths))
        with pytest.raises(StopError):
            write_token_stream(other, stream_path, CHARACTERS)
    if moment == "encode":
        assert open_token_stream(stream_path, verify=True).tobytes() == before
    else:
        with pytest.raises(FileNotFoundError, match="json: no such file"):
            open_token_stream(stream_path)
    assert not list(tmp_path.glob("*.new"))
    write_token_stream(other, stream_path, CHARACTERS)
    assert open_token_stream(stream_path, verify=True).tobytes() != before
