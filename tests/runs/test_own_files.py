"""The data of a run on somebody's own files: nothing is learned from the test."""

import pytest

from tformer.data.bpe import BytePairVocabulary
from tformer.data.text_files import PIECE_BYTES
from tformer.runs.own_files import text_data
from tformer.runs.settings import RunSettings

SMALL = {"vocabulary": "bpe", "vocab_size": 300, "max_len": 16}


@pytest.mark.parametrize("times", [1, 2 + PIECE_BYTES // 3400])
def test_byte_pairs_are_not_learned_from_the_end_of_a_text(tmp_path, times):
    """Its words come often enough to be pieces, if they were seen."""
    path = tmp_path / "book.txt"
    lines = ["the lowest of the low said it\n"] * 100, ["zyxwv zyxwv zyxwv\n"] * 15
    path.write_text("".join(line * times for part in lines for line in part))
    settings = RunSettings.of("text", files=(str(path),), **SMALL)
    data = text_data(settings, tmp_path)
    pieces = {data.vocabulary.piece(i) for i in range(len(data.vocabulary))}
    assert any("lowest" in piece for piece in pieces)
    assert not any("zy" in piece for piece in pieces)


def test_bytes_are_those_of_the_text_where_windows_cut_characters(tmp_path):
    text = "天地玄黃宇宙洪荒日月盈昃辰宿列張" * 40
    path = tmp_path / "book.txt"
    path.write_text("a quick brown fox\n" * 5 + text, encoding="utf-8")
    settings = RunSettings.of("text", files=(str(path),), **SMALL)
    data = text_data(settings, tmp_path)
    assert isinstance(data.vocabulary, BytePairVocabulary)
    rows = [row for batch in data.test for row in batch.targets.tolist()]
    joined = [token for row in rows for token in row]
    # Side by side they are one stretch of the text; a half at each end may be cut.
    whole = data.vocabulary.decode(joined).strip("\ufffd").encode()
    assert 0 <= data.test_bytes - len(whole) < 6
    assert any("\ufffd" in data.vocabulary.decode(row) for row in rows)
