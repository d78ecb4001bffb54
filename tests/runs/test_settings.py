"""What a run is asked to do: presets, and settings that cannot be."""

import dataclasses
import json

import pytest

from small_run import small_settings, train_here
from tformer.runs.folder import RunFolder
from tformer.runs.settings import RunSettings


def test_settings_begin_with_the_preset_of_their_task():
    settings = RunSettings.of("dates", steps=500)
    assert (settings.steps, settings.examples) == (500, 200_000)
    assert settings.warmup_steps == 100  # a fifth, where the preset has 400
    assert RunSettings.of("dates").warmup_steps == 400
    assert RunSettings.of("dates", steps=500, warmup_steps=7).warmup_steps == 7
    values = json.loads(json.dumps(dataclasses.asdict(settings)))
    assert RunSettings.from_json(values) == settings
    assert values.pop("optimizer") == "adamw"  # as an older version wrote it
    assert RunSettings.from_json(values) == settings


def test_the_papers_schedule_begins_with_its_own_factor():
    assert RunSettings.of("copy", schedule="inverse-sqrt").learning_rate == 1.0
    given = RunSettings.of("copy", schedule="inverse-sqrt", learning_rate=0.5)
    assert given.learning_rate == 0.5
    assert RunSettings.of("copy").learning_rate == RunSettings.learning_rate


OF_TEXT = {"files": ("a",)}


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("chess", {}, r"task \('chess'\) must be one of copy, reverse"),
        ("copy", {"model": "gpt"}, r"model \('gpt'\) must be transformer for copy"),
        ("copy", {"files": ("a",)}, "the task 'copy' reads 0, not 1"),
        ("text", {}, "the task 'text' reads 1, not 0"),
        ("pairs", {"files": ("a",) * 3}, "the task 'pairs' reads 2 or 6, not 3"),
        ("text", OF_TEXT | {"model": "transformer"}, "must be gpt, causal-lm or bert"),
        ("text", OF_TEXT | {"batch_tokens": 9}, r"batch_tokens \(9\) is for pairs"),
        ("text", OF_TEXT | {"without": ("mask",)}, "is for model 'transformer'"),
        ("text", OF_TEXT | {"examples": 9}, r"examples \(9\) is for tasks that draw"),
        ("copy", {"without": ("nothing",)}, r"without \('nothing'\)"),
        ("copy", {"vocabulary": "bpe"}, "for own files"),
        ("copy", {"vocab_size": 300}, r"vocab_size \(300\) is for vocabulary 'bpe'"),
        ("copy", {"steps": 0}, r"steps \(0\) must be at least 1"),
        ("copy", {"steps": 9, "warmup_steps": 9}, r"warmup_steps \(9\) must be in"),
        ("copy", {"dropout": 1.0}, r"dropout \(1.0\) must be in \[0, 1\)"),
        ("copy", {"learning_rate": 0.0}, r"learning_rate \(0.0\) must be above 0"),
        ("copy", {"weight_decay": -1.0}, r"weight_decay \(-1.0\)"),
        ("copy", {"seed": -1}, r"seed \(-1\) must be at least 0"),
        ("copy", {"precision": "fp8"}, r"precision \('fp8'\)"),
        ("copy", {"colour": "red"}, "no setting 'colour'"),
        (
            "copy",
            {"schedule": "inverse-sqrt", "warmup_steps": 0},
            r"warmup_steps \(0\) must be at least 1",
        ),
    ],
)
def test_settings_that_do_not_fit_are_named(task, changes, message):
    with pytest.raises(ValueError, match=message):
        RunSettings.of(task, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": [5]}, r"files \(\(5,\)\) must be a list of texts"),
        ({"files": "ab"}, r"files \('ab'\) must be a list of texts"),
        ({"without": [["mask"]]}, r"without \(\(\['mask'\],\)\) must be a list"),
        ({"task": ["copy"]}, r"task \(\('copy',\)\) must be one of"),
        ({"d_model": 16.0}, r"d_model \(16.0\) must be of type int"),
        ({"d_model": True}, r"d_model \(True\) must be of type int"),
        ({"d_model": 10**30}, r"d_model \(10+\) must be of type int"),
        ({"d_ff": "64"}, r"d_ff \('64'\) must be of type int \| None"),
        ({"dropout": None}, r"dropout \(None\) must be of type float"),
        ({"learning_rate": 10**400}, r"learning_rate \(10+\) must be of type"),
        ({"bias": 1}, r"bias \(1\) must be of type bool"),
        ({"parts": 5}, r"parts \(5\) must be of type dict"),
        ({"parts": {"colour": "red"}}, "there is no part 'colour'"),
        (
            {"model": "causal-lm", "parts": {"softcap": "20"}},
            r"softcap \(.20.\) must be of",
        ),
    ],
)
def test_a_setting_of_another_type_is_named(tmp_path, changes, message):
    folder = RunFolder(tmp_path)
    values = json.loads(json.dumps(dataclasses.asdict(small_settings())))
    assert RunSettings.from_json({**values, "dropout": 0}).dropout == 0
    folder.config.write_text(json.dumps({**values, **changes}))
    with pytest.raises(ValueError, match=f"config.json: {message}"):
        folder.settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON, or truncated"),
        ("[" * 200_000, "is not JSON, or truncated"),
        ("[]", "does not hold an object"),
        ('{"files": []}', "task"),
    ],
)
def test_what_is_no_config_is_named(tmp_path, text, message):
    folder = RunFolder(tmp_path)
    folder.config.write_text(text)
    with pytest.raises(ValueError, match=f"config.json.*{message}"):
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
