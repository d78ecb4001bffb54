"""What a run is asked to do: presets, and settings that cannot be."""

import dataclasses
import json

import pytest

from small_run import small_settings, train_here
from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings


def test_a_config_without_an_optimizer_is_of_adamw():
    """As older versions wrote it."""
    values = dataclasses.asdict(small_settings())
    assert values.pop("optimizer") == "adamw"
    assert RunSettings.from_json(values) == small_settings()


def test_settings_begin_with_the_preset_of_their_task():
    settings = RunSettings.of("dates", steps=500)
    assert (settings.steps, settings.examples) == (500, 200_000)
    assert settings.warmup_steps == 100  # a fifth, where the preset has 400
    assert RunSettings.of("dates").warmup_steps == 400
    assert RunSettings.of("dates", steps=500, warmup_steps=7).warmup_steps == 7
    assert RunSettings.from_json(dataclasses.asdict(settings)) == settings


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("chess", {}, r"task \('chess'\) must be one of copy, reverse"),
        ("copy", {"model": "gpt"}, r"model \('gpt'\) must be 'transformer'"),
        ("copy", {"files": ("a",)}, "the task 'copy' reads 0, not 1"),
        ("text", {}, "the task 'text' reads 1, not 0"),
        (
            "text",
            {"files": ("a",), "model": "transformer"},
            "must be 'gpt', 'causal-lm' or 'bert'",
        ),
        ("text", {"files": ("a",), "batch_tokens": 9}, "batch_tokens is for pairs"),
        ("text", {"files": ("a",), "without": ("mask",)}, "is for model 'transformer'"),
        ("copy", {"without": ("nothing",)}, r"without \('nothing'\)"),
        ("copy", {"vocabulary": "bpe"}, "for own files"),
        ("copy", {"steps": 0}, r"steps \(0\)"),
        (
            "copy",
            {"steps": 200, "warmup_steps": 200},
            r"warmup_steps \(200\) must be below steps \(200\)",
        ),
        ("copy", {"dropout": 1.0}, r"dropout \(1.0\)"),
        ("copy", {"learning_rate": 0.0}, r"learning_rate \(0.0\) must be above 0"),
        ("copy", {"weight_decay": -1.0}, r"weight_decay \(-1.0\)"),
        ("copy", {"precision": "fp8"}, r"precision \('fp8'\)"),
        ("copy", {"optimizer": "sgd"}, r"optimizer \('sgd'\) must be one of adamw"),
        ("copy", {"schedule": "flat"}, r"schedule \('flat'\)"),
        ("copy", {"colour": "red"}, "no setting 'colour'"),
        (
            "copy",
            {"schedule": "inverse-sqrt", "warmup_steps": 0},
            r"warmup_steps \(0\) must be above 0",
        ),
    ],
)
def test_settings_that_do_not_fit_are_named(task, changes, message):
    with pytest.raises(ValueError, match=message):
        RunSettings.of(task, **changes)


def test_a_config_changed_by_hand_is_named(tmp_path):
    folder = RunFolder.create(tmp_path / "run", small_settings())
    for text, message in [
        ("{", "is not JSON, or truncated"),
        ("[]", "does not hold an object"),
        ('{"files": []}', "task"),
        (json.dumps({**dataclasses.asdict(small_settings()), "seed": -1}), "seed"),
    ]:
        folder.config.write_text(text)
        with pytest.raises(ValueError, match=message):
            folder.settings()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": [5]}, r"files \(\[5\]\) must be a list of texts"),
        ({"files": "ab"}, r"files \('ab'\) must be a list of texts"),
        ({"without": [["mask"]]}, r"without \(\[\['mask'\]\]\) must be a list"),
        ({"task": ["copy"]}, r"task \(\['copy'\]\) must be of type str"),
        ({"d_model": 16.0}, r"d_model \(16.0\) must be of type int"),
        ({"d_model": True}, r"d_model \(True\) must be of type int"),
        ({"d_model": 10**30}, r"d_model \(10+\) must be of type int"),
        ({"d_ff": "64"}, r"d_ff \('64'\) must be of type int \| None"),
        ({"dropout": "0"}, r"dropout \('0'\) must be of type float"),
        ({"dropout": None}, r"dropout \(None\) must be of type float"),
        ({"learning_rate": 10**400}, r"learning_rate \(10+\) must be of type"),
        ({"bias": 1}, r"bias \(1\) must be of type bool"),
        ({"compile": None}, r"compile \(None\) must be of type bool"),
    ],
)
def test_a_setting_of_another_type_is_named(tmp_path, changes, message):
    folder = RunFolder.create(tmp_path / "run", small_settings())
    values = json.loads(folder.config.read_text())
    assert RunSettings.from_json({**values, "dropout": 0}).dropout == 0
    folder.config.write_text(json.dumps({**values, **changes}))
    with pytest.raises(ValueError, match=message):
        folder.settings()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("task", "goal"),
    [
        ("copy", 1.0),
        ("reverse", 0.999),
        ("sort", 0.99),
        ("addition", 0.999),
        ("number-words", 0.999),
        ("dates", 0.999),
    ],
)
def test_the_preset_of_a_task_reaches_its_goal(tmp_path, task, goal):
    """In minutes each."""
    assert (
        train_here(tmp_path / "run", RunSettings.of(task))["test_exact_match"] >= goal
    )
