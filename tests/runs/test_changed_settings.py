"""A run goes on with the settings that it began with."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from small_run import (
    SHORT,
    change,
    forget_settings,
    go_on,
    small_settings,
    small_text_settings,
    stop_after,
    train_here,
    what_counts,
)
from tformer.files import SEAL, sealed
from tformer.models.families.custom import PARTS
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings
from tformer.runs.trained import MAY_CHANGE

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
OF_PARTS = {
    "positions": "none",
    "norm": "rms",
    "placement": "post",
    "feed_forward": "swiglu",
    "experts": 3,
    "top_k": 1,
    "shared_experts": 1,
    "kv_rank": 4,
    "kv_heads": 1,
    "qk_norm": True,
    "gate": True,
    "window": 3,
    "global_every": 2,
    "sinks": True,
    "softcap": 9.0,
    "logit_cap": 9.0,
}


def test_each_setting_is_here():
    names = set(RunSettings.__dataclass_fields__)
    assert names == OTHERS.keys() | FREE.keys() | OF_FILES | {"parts"}
    missing = PARTS.keys() - OF_PARTS.keys()
    assert not missing, f"give OF_PARTS, in this file, a value of {', '.join(missing)}"
    assert OF_PARTS.keys() == PARTS.keys()
    assert FREE.keys() | {"files"} == MAY_CHANGE
    now = json.loads(json.dumps(vars(SHORT)))
    assert not [name for name in OTHERS if now[name] == OTHERS[name]]


@pytest.mark.parametrize("name", OTHERS)
def test_a_changed_setting_is_named(stopped, name):
    before = sorted(path.name for path in stopped.rglob("*"))
    was = json.loads((stopped / "config.json").read_text())[name]
    change(stopped, **{name: OTHERS[name]})
    with pytest.raises(RunError) as caught:
        Run(RunFolder.open(stopped), progress=False)
    assert str(caught.value) == (
        f"{stopped}/config.json has {name} {json.dumps(OTHERS[name])}, but "
        f"step-00000007 was made with {json.dumps(was)}: a run goes on as it began. "
        "Put it back, or begin another run"
    )
    assert sorted(path.name for path in stopped.rglob("*")) == before


def test_put_back_it_goes_on(stopped):
    change(stopped, seed=1)
    with pytest.raises(RunError, match=r"config.json has seed 1, but"):
        go_on(stopped)
    change(stopped, seed=0)
    assert go_on(stopped)["steps"] == 12


@pytest.fixture(scope="module")
def with_parts(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    stop_after(folder / "run", small_text_settings(folder, window=5, experts=5), 5)
    return folder / "run"


@pytest.mark.parametrize("name", sorted(OF_PARTS.keys() - {"kv_rank"}))
def test_those_of_parts_too(with_parts, tmp_path, name):
    path = Path(shutil.copytree(with_parts, tmp_path / "run"))
    change(path, **{name: OF_PARTS[name]})
    with pytest.raises(RunError, match=f"config.json has {name} "):
        go_on(path)


def test_nor_may_the_latents_be_wider(tmp_path):
    path, parts = tmp_path / "run", {"positions": "rotary", "kv_rank": 3}
    stop_after(path, small_text_settings(tmp_path, **parts), 5)
    change(path, kv_rank=OF_PARTS["kv_rank"])
    with pytest.raises(RunError, match=r"config\.json has kv_rank 4, but"):
        go_on(path)


@pytest.mark.parametrize(
    "changes",
    [{"model": "bert", "parts": {}}, {"vocabulary": "bpe"}, {"vocab_size": 300}],
)
def test_those_of_own_files_too(with_parts, tmp_path, changes):
    path = Path(shutil.copytree(with_parts, tmp_path / "run"))
    change(path, **changes)
    with pytest.raises(RunError, match=f"config.json has {next(iter(changes))} "):
        go_on(path)


def test_what_is_free_changes_no_step(stopped, tmp_path):
    train_here(tmp_path / "whole", SHORT)
    free = {n: x for n, x in FREE.items() if n not in ("accumulate", "compile")}
    change(stopped, **free)
    assert go_on(stopped)["test_pairs"] == 4
    steps = [
        [line for line in what_counts(path) if "loss" in line]
        for path in (stopped, tmp_path / "whole")
    ]
    assert steps[0] == steps[1]


def test_before_the_first_checkpoint_all_may_change(tmp_path):
    path = tmp_path / "run"
    RunFolder.create(path, SHORT).unlock()
    change(path, seed=1)
    assert go_on(path)["steps"] == 12


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


def test_a_checkpoint_that_kept_none_is_held_to_none(stopped):
    forget_settings(stopped)
    change(stopped, steps=13)
    assert go_on(stopped)["steps"] == 13


@pytest.mark.parametrize("odd", [None, 5, "seed", ["seed"], [], {"of": "nothing"}])
def test_nor_one_whose_settings_are_none(stopped, odd):
    file = stopped / "checkpoints/step-00000007/state.json"
    values = json.loads(file.read_text())
    del values[SEAL]
    file.write_text(json.dumps(sealed({**values, "settings": odd})))
    Run(RunFolder.open(stopped), progress=False)
