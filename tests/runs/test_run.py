"""A run: what it leaves, how it stops, and how it goes on."""

import json
import math
import multiprocessing
import os
import resource
import shutil
import signal

import pytest
import torch

from small_run import (
    SHORT,
    begin_or_resume,
    same_run,
    small_settings,
    small_text_settings,
    stop_after,
    train_here,
    what_counts,
)
from tformer import load_checkpoint
from tformer.runs import run as runs
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.run import Stopped
from tformer.tasks import TASKS
from tformer.training.evaluation import exact_match


def test_a_run_leaves_all_that_it_promises(whole):
    names = {str(p.relative_to(whole)) for p in whole.rglob("*") if p.is_file()}
    files = "config.json lock loss.svg learning_rate.svg metrics.jsonl result.json"
    assert {name for name in names if "/" not in name} == {*files.split()}
    assert names >= {"model/model.safetensors", "model/config.json"}
    assert RunFolder.open(whole).settings() == SHORT
    lines = what_counts(whole)
    steps = [x for x in lines if "loss" in x]
    assert [x["step"] for x in steps] == list(range(1, 13))
    assert set(steps[0]) == {"step", "loss", "learning_rate", "grad_norm", "tokens"}
    looks = [x for x in lines if "validation_loss" in x]
    assert [x["step"] for x in looks] == [7, 12]
    assert steps[0]["loss"] > steps[-1]["loss"]
    states = sorted(path.name for path in (whole / "checkpoints").iterdir())
    assert states == ["step-00000009", "step-00000012"]


def test_the_result_is_that_of_the_saved_model(whole):
    result = json.loads((whole / "result.json").read_text())
    model, vocabulary, manifest = load_checkpoint(whole / "model")
    assert manifest["settings"]["task"] == "reverse"
    pairs = TASKS["reverse"].pairs("test", 13, 0)
    assert (
        exact_match(model, vocabulary, pairs, max_len=17)
        == (result["test_exact_match"])
    )
    assert result["parameters"] == sum(p.numel() for p in model.parameters())
    assert 0 < result["test_loss"] < 2 * math.log(len(vocabulary))
    assert result["machine"]["torch"] == torch.__version__


@pytest.mark.parametrize(("step", "optimizer"), [(1, "adamw"), (6, "muon")])
def test_ctrl_c_saves_and_the_run_goes_on_as_if_never_stopped(
    tmp_path, step, optimizer, drawings
):
    path, before = tmp_path / "run", signal.getsignal(signal.SIGINT)
    settings = small_settings(optimizer=optimizer, steps=12)
    run = begin_or_resume(path, settings)

    def interrupt(report):
        if report.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    run.callback = interrupt
    with pytest.raises(Stopped, match=f"stopped after step {step}$"):
        run.train()
    assert (path / "checkpoints" / f"step-{step:08d}").is_dir()
    assert (path / "loss.svg").exists()
    assert signal.getsignal(signal.SIGINT) is before
    last = read_metrics(path / "metrics.jsonl")[-1]
    result = train_here(path, settings)
    train_here(tmp_path / "whole", settings)
    same_run(path, tmp_path / "whole")
    for clock in ("seconds", "cpu_seconds"):  # they go on where they stopped
        assert result[clock] > last[clock] > 0


def test_a_second_ctrl_c_stops_at_once_unless_it_is_a_double_press(
    monkeypatch, request
):
    asked = []
    # Where the tests run in the background of a shell it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with runs.stop_signals(lambda: asked.append(1)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(runs, "GRACE", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert asked == [1, 1]


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["addition", "text"])
def test_a_compiled_run_goes_on_as_if_never_stopped(tmp_path, task):
    """In new processes, since this one would still know its kernels.

    Where lengths vary, kernels are made for the first lengths that a process meets, and
    sum in another order: those numbers are the same but for rounding.
    """
    few = {"compile": True, "steps": 12, "dropout": 0.1, "save_every": 6}
    if task == "text":
        settings = small_text_settings(tmp_path, **few)
    else:
        settings = small_settings(task, max_len=40, **few)
    server = multiprocessing.get_context("spawn")
    for name in ("whole", "part"):
        path = tmp_path / name
        if name == "part":
            shutil.copytree(tmp_path / "whole", path)
            shutil.rmtree(path / "checkpoints/step-00000012")
        process = server.Process(target=train_here, args=(path, settings))
        process.start()
        process.join()
        assert process.exitcode == 0
    if task == "text":
        same_run(path, tmp_path / "whole")
        return
    part, whole = what_counts(path), what_counts(tmp_path / "whole")
    assert len(part) == len(whole) >= 12
    for one, two in zip(part, whole, strict=True):
        assert one == pytest.approx(two, rel=1e-5)


def test_the_dropout_of_a_step_is_its_own(tmp_path):
    """With one batch and no learning, only dropout can tell two steps apart."""
    settings = small_settings(
        learning_rate=1e-30, examples=7, batch_size=7, dropout=0.5, steps=9
    )
    train_here(tmp_path / "run", settings)
    losses = [x["loss"] for x in what_counts(tmp_path / "run") if "loss" in x]
    assert len(set(losses)) == 9


def test_a_full_disk_is_named_and_older_checkpoints_are_whole(stopped):
    run = begin_or_resume(stopped, SHORT)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))  # of a file
    try:
        with pytest.raises(
            RunError, match=r"of step 9 cannot be written: .*too large.*make room"
        ):
            run.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    states = sorted(path.name for path in (stopped / "checkpoints").iterdir())
    assert states == ["step-00000006", "step-00000007"]
    assert train_here(stopped, SHORT)["steps"] == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": "inverse-sqrt", "learning_rate": 1.0},
        {"batch_tokens": 300},
        {"accumulate": 3},
        {"smoothing": 0.1},
        {"precision": "bf16"},
        {"optimizer": "muon"},
        {"beta2": 0.9},
        {"weight_decay": 0.5},
        {"clip_norm": 0.01},
        {"norm_first": False},
        {"bias": False},
        {"seed": 1},
        {"without": ("mask",)},
        {"without": ("scale",)},
        {"without": ("positions",)},
        {},
    ],
)
def test_every_setting_reaches_the_training(whole, tmp_path, changes):
    until = 5  # the rest, its checkpoints and its looks would show no more
    stop_after(tmp_path / "run", small_settings(**{"steps": 12, **changes}), until)
    ours = what_counts(tmp_path / "run")
    theirs = [line for line in what_counts(whole) if line["step"] <= until]
    assert len(ours) == len(theirs) == until
    if not changes:  # else the test would see nothing
        assert ours == theirs
    elif "without" in changes:
        assert ours[0]["loss"] != pytest.approx(theirs[0]["loss"], rel=1e-6)
    else:
        assert ours != theirs
