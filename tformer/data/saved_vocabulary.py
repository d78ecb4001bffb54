"""Vocabularies as JSON, to be kept beside a model: no pickle, so nothing can be run."""

import hashlib
import json
from collections.abc import Mapping

from tformer.data.bpe import BytePairVocabulary
from tformer.data.vocabulary import CharacterVocabulary, Vocabulary


def vocabulary_to_json(vocabulary: Vocabulary) -> dict[str, object]:
    """Turn a vocabulary into what JSON can hold.

    Raises:
        TypeError: it is none of ours; what inherits from them would come back as ours.
    """
    if type(vocabulary) is CharacterVocabulary:
        return {"characters": vocabulary.characters}
    if type(vocabulary) is BytePairVocabulary:
        return {"byte_pairs": vocabulary.to_json()}
    raise TypeError(f"a {type(vocabulary).__name__} cannot be saved as JSON")


def vocabulary_from_json(values: Mapping[str, object]) -> Vocabulary:
    """Turn what `vocabulary_to_json` gave into a vocabulary again, nothing else."""
    match list(values.items()):
        case [("characters", str(characters))]:
            return CharacterVocabulary(characters)
        case [("byte_pairs", dict(tokenizer))]:
            return BytePairVocabulary(json.dumps(tokenizer))
    raise ValueError(f"no JSON of a vocabulary: it holds {sorted(map(str, values))}")


def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """Return the sha256 of a vocabulary: equal for equal ones, on every machine."""
    text = json.dumps(vocabulary_to_json(vocabulary), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
