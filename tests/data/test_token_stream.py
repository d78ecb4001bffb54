"""A file of ids: the ids of the whole text, and no half file is taken for a whole."""

import json
import os
from itertools import islice
from pathlib import Path

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


@pytest.fixture
def text_path(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def byte_pairs():
    pytest.importorskip("tokenizers")
    return BytePairVocabulary.train([TEXT], vocab_size=400)


@pytest.fixture(params=["characters", "byte pairs"])
def vocabulary(request):
    if request.param == "characters":
        return CHARACTERS
    return request.getfixturevalue("byte_pairs")


@pytest.fixture
def stream_path(tmp_path, text_path):
    path = tmp_path / "text.ids"
    write_token_stream(text_path, path, CHARACTERS)
    return path


@pytest.mark.parametrize("piece_bytes", [1, 97, 2**18])
def test_pieces_do_not_change_the_ids(
    tmp_path, text_path, vocabulary, monkeypatch, piece_bytes
):
    monkeypatch.setattr(
        token_stream,
        "read_pieces",
        lambda path: read_pieces(path, piece_bytes=piece_bytes),
    )
    count = write_token_stream(text_path, tmp_path / "new" / "a.ids", vocabulary)
    ids = open_token_stream(tmp_path / "new" / "a.ids", vocabulary, verify=True)
    assert ids.tolist() == vocabulary.encode(read_text(text_path))
    assert len(ids) == count
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == [
        "a.ids",
        "a.ids.json",
    ]


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
    options = {"batch_size": 3, "context": 20, "seed": 0}
    whole = np.array(CHARACTERS.encode(TEXT))
    for one, two in zip(
        islice(text_batches(ids, **options), 20),
        islice(text_batches(whole, **options), 20),
        strict=True,
    ):
        assert one.ids.equal(two.ids)
        assert CHARACTERS.decode(one.ids[0].tolist()) in TEXT
    with pytest.raises(ValueError, match="read-only"):
        ids[0] = 5


def test_a_truncated_file(stream_path, raises):
    size = stream_path.stat().st_size
    os.truncate(stream_path, size - 1)
    with raises(
        ValueError, f"{stream_path} is truncated: {size - 1} bytes, not {size}"
    ):
        open_token_stream(stream_path)
    os.truncate(stream_path, size + 2)
    with raises(ValueError, f"{stream_path} is too long: {size + 2} bytes, not {size}"):
        open_token_stream(stream_path)


def test_a_changed_file(stream_path):
    with stream_path.open("rb+") as file:
        file.write(b"\x07")
    open_token_stream(stream_path)  # which is not read as a whole
    with pytest.raises(ValueError, match=r"text.ids was changed: its sha256 is"):
        open_token_stream(stream_path, verify=True)


def test_another_vocabulary(stream_path, raises):
    other = CharacterVocabulary(CHARACTERS.characters[::-1])
    open_token_stream(stream_path, CHARACTERS)
    with raises(ValueError, f"{stream_path} was written with another vocabulary"):
        open_token_stream(stream_path, other)


def header_of(path: Path) -> Path:
    return path.with_name("text.ids.json")


def test_missing_files(stream_path, raises):
    header_of(stream_path).unlink()
    with raises(FileNotFoundError, f"{header_of(stream_path)}: no such file"):
        open_token_stream(stream_path)
    stream_path.unlink()
    with raises(FileNotFoundError, f"{stream_path}: no such file"):
        open_token_stream(stream_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "other"},
            r"format \('other'\) must be 'tformer tokens, version 1'",
        ),
        ({"tokens": "9"}, r"tokens \('9'\) has a wrong type"),
        ({"tokens": True}, r"tokens \(True\) has a wrong type"),
        ({"dtype": "object"}, "tokens of 'object' cannot be"),
        ({"tokens": 0}, "0 tokens of 'uint16' cannot be"),
        ({"sha256": None}, r"sha256 \(None\) has a wrong type"),
    ],
)
def test_a_foreign_header(stream_path, change, message):
    path = header_of(stream_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        open_token_stream(stream_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_header_that_is_none(stream_path, text):
    header_of(stream_path).write_text(text, encoding="latin-1")
    with pytest.raises(
        ValueError, match=r"text.ids.json (is not JSON|does not hold an object)"
    ):
        open_token_stream(stream_path)


def test_an_unknown_character_is_named_with_its_line(tmp_path, raises):
    path = tmp_path / "text.txt"
    path.write_text("abc\nab\nxbc\n")
    abc = CharacterVocabulary("abc\n")
    message = (
        f"{path}, line 3: 'x' (U+0078) in 'xbc' is not among the 4 characters of the "
        "vocabulary"
    )
    with raises(ValueError, message):
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
    replace, calls = os.replace, []

    def stop(*arguments):
        calls.append(arguments)
        if moment == "first replace" or len(calls) == 2:
            raise StopError
        replace(*arguments)

    def stop_encoding(*_, **__):
        raise StopError

    if moment == "encode":
        monkeypatch.setattr(CHARACTERS, "encode", stop_encoding, raising=False)
    else:
        monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(StopError):
        write_token_stream(other, stream_path, CHARACTERS)
    monkeypatch.undo()
    if moment == "encode":
        assert open_token_stream(stream_path, verify=True).tobytes() == before
    else:
        with pytest.raises(FileNotFoundError, match="json: no such file"):
            open_token_stream(stream_path)
    assert not list(tmp_path.glob("*.new"))
    write_token_stream(other, stream_path, CHARACTERS)
    assert open_token_stream(stream_path, verify=True).tobytes() != before


MEMORY = """
import json, sys
from itertools import islice
from tformer.data.token_stream import FORMAT, open_token_stream
from tformer.data.windows import text_batches

def resident():  # without pages of files, which the system may drop at any time
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["RssAnon"].split()[0]) * 1024

path, tokens = sys.argv[1], int(sys.argv[2])
with open(path, "wb") as file:
    file.truncate(2 * tokens)  # sparse: it takes no space
header = {"format": FORMAT, "tokens": tokens, "dtype": "uint16"}
header |= {"vocabulary": "", "sha256": ""}
with open(path + ".json", "w") as file:
    json.dump(header, file)
text_batches(open_token_stream(path), batch_size=12, context=64, seed=0).__next__()
before = resident()
ids = open_token_stream(path)
for batch in islice(text_batches(ids, batch_size=12, context=64, seed=0), 500):
    pass
print(len(ids), resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux only")
def test_a_large_file_is_not_loaded(fresh, tmp_path):
    tokens, growth = fresh(MEMORY, str(tmp_path / "a.ids"), "100_000_000").split()
    assert int(tokens) == 100_000_000  # 200 MB
    assert int(growth) < 10_000_000


def test_a_large_text_is_read_in_pieces(tmp_path, text_path, monkeypatch):
    pieces = []
    encode = CHARACTERS.encode

    def spy(text):
        pieces.append(len(text))
        return encode(text)

    monkeypatch.setattr(CHARACTERS, "encode", spy, raising=False)
    text_path.write_text(TEXT * 30, encoding="utf-8")
    assert text_path.stat().st_size > 4 * 2**18
    write_token_stream(text_path, tmp_path / "a.ids", CHARACTERS)
    assert sum(pieces) == 30 * len(TEXT)
    assert max(pieces) <= 2**18 + 200
