"""A manifest that was changed is refused: most of its letters decide on numbers."""

import json
import math
from pathlib import Path

import pytest

from checkpoint_files import make_model, same
from tformer import load_checkpoint, save_checkpoint
from tformer.data.vocabulary import CharacterVocabulary


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"num_heads": 7', '"num_heads": 2'),  # the same shapes, and other numbers
        ('"eps": 1e-05', '"eps": 1e-04'),
        ('"activation": "relu"', '"activation": "gelu"'),
        ('"norm_first": false', '"norm_first": true'),
        ('"characters": "abc"', '"characters": "acb"'),
        ('"pad_id": 0', '"pad_id": 1'),
        ('"seed": 7', '"seed": 8'),
        ('"sha256_of_the_rest"', '"sha256_of_the_test"'),
    ],
)
def test_a_letter_of_the_manifest(path, old, new):
    vocabulary = CharacterVocabulary("abc")
    save_checkpoint(path, make_model(), vocabulary=vocabulary, facts={"seed": 7})
    manifest = path.with_suffix(".json")
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=r"model\.json was changed: it is not what"):
        load_checkpoint(path)
    manifest.write_text(text)
    load_checkpoint(path)


def test_a_manifest_of_an_older_version_has_no_hash_of_itself(path):
    save_checkpoint(path, make_model())
    manifest = path.with_suffix(".json")
    values = json.loads(manifest.read_text())
    del values["sha256_of_the_rest"]
    manifest.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=r"model\.json was changed"):
        load_checkpoint(path)
    values["format"] = "tformer checkpoint, version 2"
    manifest.write_text(json.dumps(values))
    assert same(load_checkpoint(path).model, make_model())


def test_facts_come_back_as_json_has_them(path):
    """Also those whose names are no texts, or would be sorted otherwise as texts."""
    facts = {"by_step": {10: "a", 9: "b"}, "sizes": (1, 2), "loss": math.nan}
    returned = save_checkpoint(path, make_model(), facts=facts)
    manifest = load_checkpoint(path).manifest
    assert manifest["by_step"] == returned["by_step"] == {"10": "a", "9": "b"}
    assert manifest["sizes"] == returned["sizes"] == [1, 2]
