"""Byte pairs: every text comes back, and no text is a special token."""

import json
import sys
from itertools import chain
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tformer.data.bpe import (
    BytePairVocabulary,
    vocabulary_digest,
    vocabulary_from_json,
    vocabulary_to_json,
)
from tformer.data.vocabulary import CharacterVocabulary

tokenizers = pytest.importorskip("tokenizers")

TEXT = (
    """The lowest of the low were lower than the others, the others said.
    Die Größten waren größer als die Großen.

\tЧем дальше в лес, тем больше дров. 日本の春は短い。
"""
    * 3
)
VOCABULARY = BytePairVocabulary.train([TEXT], vocab_size=330)


@given(st.text(max_size=200))
def test_every_text_comes_back(text):
    assert VOCABULARY.decode(VOCABULARY.encode(text)) == text
    assert VOCABULARY.decode(VOCABULARY.encode(text, bos=True, eos=True)) == text


@given(st.lists(st.sampled_from(["the", " ", "  ", "\n", "'s", "ß", "7", "\t"])))
def test_a_text_cut_at_line_ends_gives_the_ids_of_the_whole(words):
    text = "".join(words)
    parts = [VOCABULARY.encode(line) for line in text.splitlines(keepends=True)]
    assert list(chain.from_iterable(parts)) == VOCABULARY.encode(text)


def test_it_is_as_large_as_it_may_be_and_finds_words():
    assert len(VOCABULARY) == 330
    ids = VOCABULARY.encode(TEXT)
    assert len(ids) < 0.75 * len(TEXT.encode())
    assert max(ids) < 330
    assert {"the", " the", " low"} & {VOCABULARY.decode([i]) for i in ids}


def test_without_pairs_it_is_bytes():
    vocabulary = BytePairVocabulary.train(["abc"], vocab_size=500)
    assert len(vocabulary) == 259  # no pair comes twice
    assert len(vocabulary.encode("日 é")) == 6


@pytest.mark.parametrize("text", ["<pad>", "</s>", "<|endoftext|>", "\x00\x01\x02"])
def test_no_text_is_a_special_token(text):
    ids = VOCABULARY.encode(f"a {text} b")
    assert min(ids) > VOCABULARY.eos_id
    assert VOCABULARY.decode(ids) == f"a {text} b"


def test_special_tokens():
    assert (VOCABULARY.pad_id, VOCABULARY.bos_id, VOCABULARY.eos_id) == (0, 1, 2)
    ids = VOCABULARY.encode("low", bos=True, eos=True)
    assert (ids[0], ids[-1]) == (1, 2)
    assert ids[1:-1] == VOCABULARY.encode("low")
    assert VOCABULARY.decode([1, *VOCABULARY.encode("lo"), 0, 2, 77]) == "lo"


def test_training_is_repeatable_and_may_be_fed_in_portions():
    again = BytePairVocabulary.train(TEXT.splitlines(keepends=True), vocab_size=330)
    assert again.to_json() == VOCABULARY.to_json()


def test_half_a_character():
    (*start, _) = VOCABULARY.encode("€")
    assert VOCABULARY.decode(start) == "\ufffd"
    with pytest.raises(UnicodeEncodeError, match=r"\\ud800.*surrogates not allowed"):
        VOCABULARY.encode("a\ud800b")


@given(st.text(max_size=12), st.integers(0, 40), st.integers(0, 40))
def test_bytes_are_counted_where_ids_are_cut(text, first, last):
    ids = VOCABULARY.encode(text, bos=True, eos=True)
    assert VOCABULARY.num_bytes(ids) == len(text.encode())
    parts = ids[:first], ids[first : first + last], ids[first + last :]
    assert sum(map(VOCABULARY.num_bytes, parts)) == len(text.encode())


def test_bad_input_is_named(raises):
    rule = "must be at least 259: 256 bytes, padding, start and end"
    with raises(ValueError, f"vocab_size (258) {rule}"):
        BytePairVocabulary.train(["a"], vocab_size=258)
    with raises(ValueError, "vocab_size (1000000000000) must be at most 1048576"):
        BytePairVocabulary.train(["a"], vocab_size=10**12)
    for bad in (-1, 330):
        with raises(ValueError, f"id ({bad}) must be in [0, 330)"):
            VOCABULARY.decode([5, bad])
    for text in ("{}", "what"):
        with pytest.raises(ValueError, match="this is no JSON of tokenizers"):
            BytePairVocabulary(text)


def changed(path, value):
    """The JSON of our tokenizer, with another value at such a path: model__dropout."""
    part = settings = VOCABULARY.to_json()
    *parents, name = path.split("__")
    for parent in parents:
        part = part[int(parent) if parent.isdecimal() else parent]
    part[name] = value
    return json.dumps(settings)


STEPS = "pre_tokenizer__pretokenizers"
VOCAB = VOCABULARY.to_json()["model"]["vocab"]
PAD = {"id": 0, "content": "<pad>", "special": True, "single_word": False}
PAD |= {"lstrip": False, "rstrip": False, "normalized": False}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("model__dropout", 0.5, "its model is another"),
        (f"{STEPS}__0__pattern", {"Regex": "(x+x+)+y"}, "its pre_tokenizer is another"),
        (f"{STEPS}__1__add_prefix_space", True, "its pre_tokenizer is another"),
        ("decoder", None, "its decoder is another"),
        ("normalizer", {"type": "Lowercase"}, "its normalizer is another"),
        ("added_tokens", [PAD], "its added_tokens is another"),
        ("model", {"type": "WordLevel", "vocab": {}, "unk_token": ""}, "its model"),
        ("model__vocab", {**VOCAB, "the": 4000}, "the ids of 327 pieces must be 0, 1"),
        ("model", {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "each byte"),
        ("model__vocab", {**VOCAB, "日": len(VOCAB)}, "each piece bytes alone"),
        ("model__vocab", {**VOCAB, "": len(VOCAB)}, "each piece bytes alone"),
    ],
)
def test_a_tokenizer_that_might_not_keep_every_text_is_refused(path, value, message):
    """One that lowercases, or turns <pad> into a token, would not."""
    with pytest.raises(ValueError, match=message):
        BytePairVocabulary(changed(path, value))


def test_a_panic_of_tokenizers_is_a_value_error(monkeypatch):
    """It is no `Exception`, so that nothing above would catch it."""
    text = json.dumps(VOCABULARY.to_json())
    panic = type("PanicException", (BaseException,), {})
    for error, seen in ((panic, ValueError), (KeyboardInterrupt, KeyboardInterrupt)):
        reading = Mock(from_str=Mock(side_effect=error), wraps=tokenizers.Tokenizer)
        monkeypatch.setattr(tokenizers, "Tokenizer", reading)
        with pytest.raises(seen):
            BytePairVocabulary(text)
        monkeypatch.undo()


def test_a_missing_package_is_named(monkeypatch):
    text = json.dumps(VOCABULARY.to_json())
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'tformer\[train\]'"):
        BytePairVocabulary(text)
    with pytest.raises(ImportError, match=r"pip install 'tformer\[train\]'"):
        BytePairVocabulary.train(["a"], vocab_size=300)


CHARACTERS = CharacterVocabulary('aé日"\\\n\x07')


@pytest.mark.parametrize("vocabulary", [CHARACTERS, VOCABULARY])
def test_they_come_back(vocabulary):
    text = json.dumps(vocabulary_to_json(vocabulary))
    again = vocabulary_from_json(json.loads(text))
    assert type(again) is type(vocabulary)
    assert len(again) == len(vocabulary)
    assert again.decode(range(3, len(again))) == vocabulary.decode(range(3, len(again)))
    assert vocabulary_digest(again) == vocabulary_digest(vocabulary)


def test_digests_differ_with_the_ids():
    others = [CharacterVocabulary("ab"), CharacterVocabulary("ba"), VOCABULARY]
    assert len({vocabulary_digest(each) for each in others}) == 3


@pytest.mark.parametrize(
    "values",
    [{}, {"characters": ["a"]}, {"characters": "ab", "more": 1}, {"pickle": "ab"}],
)
def test_what_is_none_is_refused(values):
    with pytest.raises(ValueError, match="no JSON of a vocabulary: it holds"):
        vocabulary_from_json(values)


def test_what_is_wrong_inside_is_named(raises):
    with pytest.raises(ValueError, match="occur twice"):
        vocabulary_from_json({"characters": "aa"})
    with pytest.raises(ValueError, match="no JSON of tokenizers"):
        vocabulary_from_json({"byte_pairs": {}})
    mine = type("Mine", (CharacterVocabulary,), {})("ab")  # would come back as ours
    with raises(TypeError, "a Mine cannot be saved as JSON"):
        vocabulary_to_json(mine)
