"""Parallel files: line by line, and refused with file and line."""

import pytest

from tformer.data.pairs import (
    SPLITS,
    Pair,
    check_pairs,
    hash_split,
    read_pairs,
    split_pairs,
)
from tformer.data.vocabulary import CharacterVocabulary


@pytest.fixture
def files(tmp_path):
    def write(source: bytes, target: bytes):
        paths = tmp_path / "train.de", tmp_path / "train.en"
        for path, data in zip(paths, (source, target), strict=True):
            path.write_bytes(data)
        return paths

    return write


def test_lines_belong_together(files):
    paths = files(b"eins\r\nzwei \r\ndrei\x0bvier", b"one\n two\nthree\x0bfour\n")
    assert read_pairs(*paths) == [
        ("eins", "one"),
        ("zwei", "two"),
        ("drei\x0bvier", "three\x0bfour"),
    ]


def test_numbers_of_lines_differ(files, raises):
    source, target = files(b"eins\nzwei\ndrei\n", b"one\ntwo\n")
    message = (
        f"{source} has 3 lines but {target} has 2: line n of one must be the "
        "translation of line n of the other"
    )
    with raises(ValueError, message):
        read_pairs(source, target)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (b"one\n\n", ", line 2 is empty"),
        ("one\n\u3000".encode(), ", line 2 is empty"),
        (b"", " is empty"),
        (b"a\n\xfc", ", line 2: byte 1 (0xfc) is not UTF-8 (invalid start byte)"),
    ],
)
def test_what_cannot_be_read_is_named(files, raises, target, message):
    source, target = files(b"eins\nzwei\n", target)
    with raises(ValueError, f"{target}{message}"):
        read_pairs(source, target)


VOCABULARY = CharacterVocabulary("abcdefgh")


def test_what_a_model_cannot_read_or_write_is_named(raises):
    pairs = [Pair("abc", "a"), Pair("ab", "abcd")]
    check_pairs(VOCABULARY, pairs, max_len=5)
    message = (
        "my.en, line 2 has 5 tokens, the end token included, but the model takes at "
        "most max_len (4)"
    )
    with raises(ValueError, message):
        check_pairs(VOCABULARY, pairs, max_len=4, target_path="my.en")
    with pytest.raises(ValueError, match=r"my\.de, line 1: 'x' \(U\+0078\) in 'axb'"):
        check_pairs(VOCABULARY, [Pair("axb", "a")], max_len=9, source_path="my.de")


def test_the_split_is_the_same_for_ever():
    splits = {item: hash_split(item) for item in ("2", "30", "3", "29", "0", "1", "é")}
    assert [*splits.values()] == ["test"] * 2 + ["validation"] * 2 + ["train"] * 3


def test_one_in_twenty_is_in_the_test_and_in_validation():
    splits = [hash_split(str(i)) for i in range(40_000)]
    assert splits.count("test") == pytest.approx(2000, abs=150)
    assert splits.count("validation") == pytest.approx(2000, abs=150)


def test_a_source_that_comes_twice_is_in_one_split():
    pairs = [Pair(str(i % 400), str(i)) for i in range(800)]
    splits = split_pairs(pairs)
    assert tuple(splits) == SPLITS
    assert sorted(p for split in SPLITS for p in splits[split]) == sorted(pairs)
    sources = [{pair.source for pair in splits[split]} for split in SPLITS]
    assert sum(map(len, sources)) == 400
    assert 10 < len(sources[2]) < 30
    assert splits["test"] == sorted(splits["test"], key=pairs.index)
