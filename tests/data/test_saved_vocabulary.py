"""Vocabularies come back from JSON as they were, and nothing else is taken for one."""

import json

import pytest

from tformer.data.bpe import BytePairVocabulary
from tformer.data.saved_vocabulary import (
    vocabulary_digest,
    vocabulary_from_json,
    vocabulary_to_json,
)
from tformer.data.vocabulary import CharacterVocabulary

CHARACTERS = CharacterVocabulary('aé日"\\\n\x07')
TEXT = "low lower lowest é日\n" * 3


@pytest.fixture(scope="module")
def byte_pairs():
    pytest.importorskip("tokenizers")
    return BytePairVocabulary.train([TEXT], vocab_size=270)


def test_characters_come_back():
    text = json.dumps(vocabulary_to_json(CHARACTERS))
    again = vocabulary_from_json(json.loads(text))
    assert isinstance(again, CharacterVocabulary)
    assert again.characters == CHARACTERS.characters
    assert vocabulary_digest(again) == vocabulary_digest(CHARACTERS)


def test_byte_pairs_come_back(byte_pairs):
    text = json.dumps(vocabulary_to_json(byte_pairs))
    again = vocabulary_from_json(json.loads(text))
    assert isinstance(again, BytePairVocabulary)
    assert again.encode(TEXT) == byte_pairs.encode(TEXT)
    assert len(again) == len(byte_pairs)
    assert vocabulary_digest(again) == vocabulary_digest(byte_pairs)


def test_digests_differ_with_the_ids(byte_pairs):
    others = [CharacterVocabulary("ab"), CharacterVocabulary("ba"), byte_pairs]
    assert len({vocabulary_digest(each) for each in others}) == 3


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"characters": ["a"]},
        {"characters": "ab", "more": 1},
        {"pickle": "ab"},
        {"byte_pairs": "text"},
    ],
)
def test_what_is_none_is_refused(values):
    with pytest.raises(ValueError, match="no JSON of a vocabulary: it holds"):
        vocabulary_from_json(values)


def test_what_is_wrong_inside_is_named():
    with pytest.raises(ValueError, match="occur twice"):
        vocabulary_from_json({"characters": "aa"})
    pytest.importorskip("tokenizers")
    with pytest.raises(ValueError, match="no JSON of tokenizers"):
        vocabulary_from_json({"byte_pairs": {}})


def test_a_vocabulary_of_ones_own(raises):
    class Mine(str):
        """Has nothing that could be written down."""

    with raises(TypeError, "a Mine cannot be saved as JSON"):
        vocabulary_to_json(Mine())
