"""A run goes on with the settings that it began with."""

import dataclasses
import json
import shutil
from unittest.mock import Mock

import pytest

from every_module import OTHER_PARTS
from small_run import (
    SHORT,
    change,
    go_on,
    small_settings,
    small_text_settings,
    stop_after,
    train_here,
    what_counts,
)
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.model import MAY_CHANGE, check_unchanged
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings

# Each another value, with which a run could begin.
OTHERS = {
    "task": "copy",
    "d_model": 20,
    "num_heads": 5,
    "num_layers": 2,
    "d_ff": None,
    "max_len": 24,
    "dropout": 0.2,
    "bias": False,
    "norm_first": False,
    "without": ["mask"],
    "examples": 131,
    "steps": 13,
    "batch_size": 12,
    "batch_tokens": 500,
    "optimizer": "muon",
    "learning_rate": 0.5,
    "schedule": "inverse-sqrt",
    "warmup_steps": 6,
    "weight_decay": 0.5,
    "beta2": 0.5,
    "clip_norm": 2.0,
    "smoothing": 0.1,
    "precision": "bf16",
    "seed": 1,
}
FREE = {
    "save_every": 4,
    "keep": 3,
    "evaluate_every": 5,
    "evaluate_examples": 3,
    "test_examples": 4,
    "accumulate": 2,
    "compile": True,
}
OF_FILES = {"files", "model", "vocabulary", "vocab_size"}


def test_each_setting_is_here():
    names = set(RunSettings.__dataclass_fields__)
    assert names == OTHERS.keys() | FREE.keys() | OF_FILES | {"parts"}
    assert FREE.keys() | {"files"} == MAY_CHANGE
    now = json.loads(json.dumps(vars(SHORT)))
    assert not [name for name in OTHERS if now[name] == OTHERS[name]]


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_setting_is_named(half, name):
    was = json.loads((half / "config.json").read_text())
    changed = RunSettings.from_json({**was, name: OTHERS[name]})
    with pytest.raises(RunError) as caught:
        check_unchanged(RunFolder.open(half), changed)
    assert str(caught.value) == (
        f"{half}/config.json has {name} {json.dumps(OTHERS[name])}, but "
        f"step-00000007 was made with {json.dumps(was[name])}: a run goes on as it "
        "began. Put it back, or begin another run"
    )


def test_put_back_it_goes_on(stopped):
    change(stopped, seed=1)
    before = sorted(path.name for path in stopped.rglob("*"))
    with pytest.raises(RunError, match=r"config.json has seed 1, but"):
        go_on(stopped)
    assert sorted(path.name for path in stopped.rglob("*")) == before
    change(stopped, seed=0)
    assert go_on(stopped)["steps"] == 12


def test_those_of_parts_and_of_own_files_too(tmp_path):
    settings = small_text_settings(tmp_path, window=5, experts=5)
    path = tmp_path / "run"
    stop_after(path, settings, 1)
    changes = [
        {name: OTHER_PARTS[name]} for name in sorted(OTHER_PARTS.keys() - {"kv_rank"})
    ]
    changes += [{"model": "bert", "parts": {}}, {"vocabulary": "bpe"}]
    for each in changes:
        changed = RunSettings.from_json(dataclasses.asdict(settings) | each)
        with pytest.raises(RunError, match=f"config.json has {next(iter(each))} "):
            check_unchanged(RunFolder.open(path), changed)


def test_what_is_free_changes_no_step(stopped, whole):
    free = {n: x for n, x in FREE.items() if n not in ("accumulate", "compile")}
    change(stopped, **free)
    assert go_on(stopped)["test_pairs"] == 4
    steps = [
        [line for line in what_counts(path) if "loss" in line]
        for path in (stopped, whole)
    ]
    assert steps[0] == steps[1]


def test_before_the_first_checkpoint_all_may_change(tmp_path):
    path = tmp_path / "run"
    RunFolder.create(path, SHORT).unlock()
    change(path, seed=1, steps=6)
    assert go_on(path)["steps"] == 6


def test_a_schedule_without_an_end_lets_a_run_be_longer(tmp_path):
    short = small_settings(schedule="inverse-sqrt", learning_rate=1.0, steps=9)
    long = small_settings(schedule="inverse-sqrt", learning_rate=1.0, steps=14)
    train_here(tmp_path / "run", short)
    change(tmp_path / "run", steps=14)
    run = Run(RunFolder.open(tmp_path / "run"), progress=False)
    run._finish = Mock(side_effect=KeyboardInterrupt)  # between two files
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert go_on(tmp_path / "run")["steps"] == 14  # and not what came of the short one
    train_here(tmp_path / "whole", long)
    one, two = (
        tmp_path / name / "model/model.safetensors" for name in ("run", "whole")
    )
    assert one.read_bytes() == two.read_bytes()


class TestDone:
    """A run that is done, and whose checkpoints were removed to make room."""

    @pytest.fixture
    def done(self, whole, tmp_path):
        path = tmp_path / "run"
        shutil.copytree(whole, path)
        shutil.rmtree(path / "checkpoints")
        return path

    def test_it_is_not_trained_anew(self, done):
        names = ("metrics.jsonl", "model/model.safetensors", "result.json")
        before = [(done / name).read_bytes() for name in names]
        assert go_on(done) == read_kept_json(done / "result.json")
        assert [(done / name).read_bytes() for name in names] == before

    def test_nor_with_other_settings_in_its_place(self, done):
        change(done, d_model=20)
        with pytest.raises(RunError, match=r"d_model 20, but model was ma"):
            go_on(done)
        manifest = done / "model/config.json"
        manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 1'))
        change(done, d_model=10, seed=1)
        with pytest.raises(ValueError, match=r"model/config.json was changed"):
            go_on(done)
