"""The committed model: its manifest is held to the truth."""

import hashlib
import json
import re
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest
import torch

from tformer import TransformerConfig, load_pretrained
from tformer.decoding import translate
from tformer.pretrained.__main__ import RECIPE, make_dates
from tformer.tasks.dates import HELD_OUT, ISO_LEN, LOCALES, date_examples, exact_match


@pytest.fixture(scope="module")
def dates():
    return load_pretrained("dates")


@pytest.fixture(scope="module")
def manifest():
    text = files("tformer.pretrained").joinpath("dates.json").read_text("utf-8")
    return json.loads(text)


def test_the_manifest_describes_this_file(manifest):
    weights = files("tformer.pretrained").joinpath(manifest["weights"]).read_bytes()
    assert manifest["weights"] == "dates.safetensors"
    assert manifest["bytes"] == len(weights) < 1_100_000
    assert manifest["sha256"] == hashlib.sha256(weights).hexdigest()


def test_the_manifest_describes_this_model(dates, manifest):
    assert dates.manifest == manifest
    expected = TransformerConfig.tiny(
        vocab_size=len(dates.vocabulary), dropout=0.0, norm_first=True
    )
    assert dates.model.config == expected
    assert not dates.model.training
    assert next(dates.model.parameters()).dtype == torch.float32


def test_the_model_was_made_by_the_recipe_of_this_package(manifest):
    assert manifest["recipe"] == RECIPE
    assert manifest["locales"] == list(LOCALES)
    assert manifest["cpu_minutes"] < 10


def test_the_exact_match_of_the_manifest_is_true(dates, manifest):
    """On all 2,000 held-out dates; another Babel may write some in another way."""
    assert manifest["held_out_examples"] == HELD_OUT == 2000
    examples = date_examples(2000, seed=0, split="test")
    if version("babel") == manifest["babel"]:
        measured = exact_match(dates.model, dates.vocabulary, examples)
        # Another processor may round one close decision in a thousand differently.
        assert measured == pytest.approx(manifest["exact_match"], abs=0.001)
    else:
        known = set(dates.vocabulary.characters)
        readable = [e for e in examples if set(e.text) <= known]
        assert len(readable) > 1900
        assert exact_match(dates.model, dates.vocabulary, readable) > 0.97
    assert manifest["exact_match"] >= 0.999


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("jeudi 3 mai 1979", "1979-05-03"),
        ("May 3, 1979", "1979-05-03"),
        ("1979. május 3.", "1979-05-03"),
        ("12 ΜΑΡΤΊΟΥ 2024", "2024-03-12"),
        ("2024年2月29日木曜日", "2024-02-29"),
        ("niedziela, 31 grudnia 2000", "2000-12-31"),
    ],
)
def test_known_dates_are_written(dates, text, iso):
    assert translate(*dates[:2], [text], max_len=ISO_LEN + 1) == [iso]


def test_what_the_model_writes_is_always_a_date(dates):
    texts = [e.text for e in date_examples(200, seed=3, split="validation")]
    for written in translate(*dates[:2], texts, max_len=20):
        assert re.fullmatch(r"(19|20)\d\d-[01]\d-[0-3]\d", written)


def test_two_loads_are_two_models(dates):
    other = load_pretrained("dates").model
    with torch.no_grad():
        next(other.parameters()).zero_()
    assert not torch.equal(next(other.parameters()), next(dates.model.parameters()))


def test_an_unknown_name_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match=r"name \('date'\) must be one of dates$"):
        load_pretrained("date")


def test_the_recipe_runs_and_repeats_itself(tmp_path):
    """Three steps of it, twice: the same weights, and a manifest that says so."""
    recipe = {**RECIPE, "steps": 3, "warmup_steps": 1, "batch_size": 8, "examples": 400}
    digests = []
    for name in ("one", "two"):
        path: Path = tmp_path / f"{name}.safetensors"
        right = make_dates(recipe, path, held_out=20, progress=False)
        manifest = json.loads(path.with_suffix(".json").read_text())
        assert manifest["exact_match"] == right
        assert manifest["recipe"] == recipe
        digests.append(manifest["sha256"])
    assert digests[0] == digests[1]
    make_dates({**recipe, "seed": 1}, path, held_out=20, progress=False)
    assert json.loads(path.with_suffix(".json").read_text())["sha256"] != digests[0]
