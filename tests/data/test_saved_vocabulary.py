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
BYTE_PAIRS = BytePairVocabulary.train([TEXT], vocab_size=270)


@pytest.mark.parametrize("vocabulary", [CHARACTERS, BYTE_PAIRS])
def test_they_come_back(vocabulary):
    text = json.dumps(vocabulary_to_json(vocabulary))
    again = vocabulary_from_json(json.loads(text))
    assert type(again) is type(vocabulary)
    assert len(again) == len(vocabulary)
    assert again.decode(range(3, len(again))) == vocabulary.decode(range(3, len(again)))
    assert vocabulary_digest(again) == vocabulary_digest(vocabulary)


def test_digests_differ_with_the_ids():
    others = [CharacterVocabulary("ab"), CharacterVocabulary("ba"), BYTE_PAIRS]
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


def test_what_is_wrong_inside_is_named(raises):
    with pytest.raises(ValueError, match="occur twice"):
        vocabulary_from_json({"characters": "aa"})
    with pytest.raises(ValueError, match="no JSON of tokenizers"):
        vocabulary_from_json({"byte_pairs": {}})
    mine = type("Mine", (CharacterVocabulary,), {})("ab")  # would come back as ours
    with raises(TypeError, "a Mine cannot be saved as JSON"):
        vocabulary_to_json(mine)
