"""A run goes on with the settings that it began with."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from small_run import (
    begin_or_resume,
    forget_settings,
    small_settings,
    small_text_settings,
    stop_after,
    train_here,
    what_counts,
)
from tformer.files import SEAL, sealed
from tformer.models.families.custom import PARTS
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.run import Run
from tformer.runs.settings import RunSettings
from tformer.runs.trained import MAY_CHANGE


def change(path: Path, **changes) -> None:
    config = path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **changes}))


def go_on(path: Path) -> dict:
    return Run(RunFolder.open(path), progress=False).train()


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> Path:
    """A run that was stopped after its fifth step."""
    path = tmp_path_factory.mktemp("once") / "run"
    stop_after(path, small_settings(), 5)
    return path


@pytest.fixture
def stopped(once, tmp_path) -> Path:
    return Path(shutil.copytree(once, tmp_path / "run"))


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
    "steps": 38,
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
    now = json.loads(json.dumps(vars(small_settings())))
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
        f"step-00000005 was made with {json.dumps(was)}: a run goes on as it began. "
        "Put it back, or begin another run"
    )
    assert sorted(path.name for path in stopped.rglob("*")) == before


def test_put_back_it_goes_on(stopped):
    change(stopped, seed=1)
    with pytest.raises(RunError, match=r"config.json has seed 1, but"):
        go_on(stopped)
    change(stopped, seed=0)
    assert go_on(stopped)["steps"] == 37


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
    [
        {"files": ["other.txt"], "task": "text", "model": "gpt"},
        {"model": "bert"},
        {"vocabulary": "bpe"},
        {"vocab_size": 300},
    ],
)
def test_those_of_own_files_too(tmp_path, changes):
    path = tmp_path / "run"
    stop_after(path, small_text_settings(tmp_path), 5)
    if "task" in changes:  # which is the one that may
        shutil.move(tmp_path / "book.txt", tmp_path / "other.txt")
        changes = {"files": [str(tmp_path / "other.txt")]}
        change(path, **changes)
        assert go_on(path)["steps"] == 12
        return
    change(path, **changes)
    with pytest.raises(RunError, match=f"config.json has {next(iter(changes))} "):
        go_on(path)


def test_what_is_free_changes_no_step(stopped, tmp_path):
    train_here(tmp_path / "whole", small_settings())
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
    run = begin_or_resume(path, small_settings())
    run.folder.unlock()
    change(path, seed=1)
    go_on(path)
    train_here(tmp_path / "other", small_settings(seed=1))
    assert what_counts(path) == what_counts(tmp_path / "other")


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
    change(stopped, steps=38)
    assert go_on(stopped)["steps"] == 38


@pytest.mark.parametrize("odd", [None, 5, "seed", ["seed"], [], {"of": "nothing"}])
def test_nor_one_whose_settings_are_none(stopped, odd):
    file = stopped / "checkpoints/step-00000005/state.json"
    values = json.loads(file.read_text())
    del values[SEAL]
    file.write_text(json.dumps(sealed({**values, "settings": odd})))
    Run(RunFolder.open(stopped), progress=False)


def test_pairs_may_lie_elsewhere(tmp_path):
    lines = "".join(f"{a} {b}\n" for a in "abcdefghijklmnop" for b in "abcdefgh")
    for name in ("one", "two"):
        (tmp_path / name).write_text(lines)
    files = tuple(str(tmp_path / name) for name in ("one", "two"))
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 1, "steps": 6}
    settings = RunSettings.of("pairs", files=files, warmup_steps=2, **sizes)
    stop_after(tmp_path / "run", settings, 3)
    (tmp_path / "there").mkdir()
    for name in ("one", "two"):
        (tmp_path / name).rename(tmp_path / "there" / name)
    moved = [str(tmp_path / "there" / name) for name in ("one", "two")]
    with pytest.raises(RunError, match="no such file"):
        go_on(tmp_path / "run")
    change(tmp_path / "run", files=moved)
    assert go_on(tmp_path / "run")["steps"] == 6


class TestDone:
    """A run that is done, and whose checkpoints were removed to make room."""

    @pytest.fixture
    def done(self, tmp_path) -> Path:
        path = tmp_path / "run"
        train_here(path, small_settings(steps=9))
        shutil.rmtree(path / "checkpoints")
        return path

    def test_it_is_not_trained_anew(self, done):
        names = ("metrics.jsonl", "model/model.safetensors", "result.json")
        before = [(done / name).read_bytes() for name in names]
        assert go_on(done) == read_kept_json(done / "result.json")
        assert [(done / name).read_bytes() for name in names] == before

    def test_nor_with_other_settings_in_its_place(self, done):
        before = (done / "model/model.safetensors").read_bytes()
        change(done, d_model=20)
        with pytest.raises(RunError, match=r"d_model 20, but model was ma"):
            go_on(done)
        assert (done / "model/model.safetensors").read_bytes() == before

    def test_nor_where_its_result_is_gone(self, done):
        (done / "result.json").unlink()
        before = (done / "metrics.jsonl").read_bytes()
        with pytest.raises(RunError, match="has a model, and no checkpoint to go on"):
            go_on(done)
        assert (done / "metrics.jsonl").read_bytes() == before

    def test_nor_where_its_manifest_was_changed(self, done):
        manifest = done / "model/config.json"
        manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 1'))
        change(done, seed=1)
        with pytest.raises(RunError, match=r"model/config.json was changed"):
            go_on(done)

    def test_with_checkpoints_that_are_not_of_the_last_step_it_goes_on(self, tmp_path):
        path = tmp_path / "run"
        train_here(path, small_settings(steps=9))
        shutil.rmtree(path / "checkpoints/step-00000009")
        assert go_on(path) == read_kept_json(path / "result.json")


class TestUnfinished:
    """A run that is not done, and whose checkpoints are gone: a disk not mounted."""

    @pytest.mark.parametrize("left", ["nothing", "an empty folder", "a file"])
    def test_it_is_not_begun_anew_over_its_metrics(self, stopped, left):
        checkpoints = stopped / "checkpoints"
        checkpoints.rename(stopped.parent / "elsewhere")
        if left == "an empty folder":
            checkpoints.mkdir()
        if left == "a file":
            checkpoints.touch()
        before = (stopped / "metrics.jsonl").read_bytes()
        with pytest.raises(
            RunError, match=r"has made 5 steps, and .*checkpoints has no"
        ):
            go_on(stopped)
        assert (stopped / "metrics.jsonl").read_bytes() == before
        if left != "nothing":
            checkpoints.rmdir() if checkpoints.is_dir() else checkpoints.unlink()
        (stopped.parent / "elsewhere").rename(checkpoints)
        assert go_on(stopped)["steps"] == small_settings().steps

    @pytest.mark.parametrize("step", [1, 3])
    def test_before_its_first_checkpoint_it_is(self, tmp_path, step):
        training = begin_or_resume(tmp_path / "run", small_settings(steps=9))

        def die(report):
            if report.step == step:
                raise ZeroDivisionError

        training.callback = die
        with pytest.raises(ZeroDivisionError):
            training.train()
        assert go_on(tmp_path / "run")["steps"] == 9
