"""A run: what it leaves, how it stops, and how it goes on."""

import dataclasses
import json
import math
import multiprocessing
import os
import resource
import shutil
import signal

import pytest
import torch
from safetensors.torch import load_file

from small_run import (
    begin_or_resume,
    forget_settings,
    small_settings,
    small_text_settings,
    train_here,
    what_counts,
)
from small_run import stop_after as stop_run_after
from tformer import load_checkpoint
from tformer.runs import run as running
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.run import Run, Stopped
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS
from tformer.training.evaluation import exact_match


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was not disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run"
    train_here(path, small_settings())
    return path


def stop_after(run: Run, step: int) -> Run:
    """Let a signal come while a step is made."""

    def interrupt(report):
        if report.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    run.callback = interrupt
    return run


def test_a_run_leaves_all_that_it_promises(whole):
    names = {str(path.relative_to(whole)) for path in whole.rglob("*")}
    assert names >= {"config.json", "metrics.jsonl", "result.json", "attention.svg"}
    assert names >= {
        "model/model.safetensors",
        "model/config.json",
        "learning_rate.svg",
        "loss.svg",
    }
    assert RunFolder.open(whole).settings() == small_settings()
    lines = what_counts(whole)
    steps = [x for x in lines if "loss" in x]
    assert [x["step"] for x in steps] == list(range(1, 38))
    assert set(steps[0]) == {"step", "loss", "learning_rate", "grad_norm", "tokens"}
    looks = [x for x in lines if "validation_loss" in x]
    assert [x["step"] for x in looks] == [7, 14, 21, 28, 35, 37]
    assert steps[0]["loss"] > steps[-1]["loss"]
    states = sorted(path.name for path in (whole / "checkpoints").iterdir())
    assert states == ["step-00000036", "step-00000037"]


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


def test_a_run_that_is_done_is_not_trained_again(whole):
    before = (whole / "metrics.jsonl").read_bytes()
    result = train_here(whole, small_settings())
    assert result == read_kept_json(whole / "result.json")
    assert (whole / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize("step", [1, 6, 20])
def test_ctrl_c_saves_and_the_run_goes_on_as_if_never_stopped(whole, tmp_path, step):
    path, before = tmp_path / "run", signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped, match=f"stopped after step {step}$"):
        stop_after(begin_or_resume(path, small_settings()), step).train()
    assert (path / "checkpoints" / f"step-{step:08d}").is_dir()
    assert (path / "loss.svg").exists()
    assert signal.getsignal(signal.SIGINT) is before
    train_here(path, small_settings())
    assert what_counts(path) == what_counts(whole)
    for name in ("model/model.safetensors", "model/config.json"):
        assert (path / name).read_bytes() == (whole / name).read_bytes()


def test_a_second_ctrl_c_stops_at_once_unless_it_is_a_double_press(
    monkeypatch, request
):
    asked = []
    # Where the tests run in the background of a shell it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with running.stop_signals(lambda: asked.append(1)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        monkeypatch.setattr(running, "GRACE", 0.0)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert asked == [1]


def test_with_muon_it_goes_on_as_if_never_stopped(tmp_path):
    settings = small_settings(optimizer="muon", steps=12)
    train_here(tmp_path / "whole", settings)
    stop_run_after(tmp_path / "part", settings, 5)
    train_here(tmp_path / "part", settings)
    assert what_counts(tmp_path / "part") == what_counts(tmp_path / "whole")
    model = "model/model.safetensors"
    ours, theirs = (tmp_path / name / model for name in ("part", "whole"))
    assert ours.read_bytes() == theirs.read_bytes()


def test_a_config_without_an_optimizer_is_of_adamw():
    """As older versions wrote it."""
    values = dataclasses.asdict(small_settings())
    assert values.pop("optimizer") == "adamw"
    assert RunSettings.from_json(values) == small_settings()


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["addition", "text"])
def test_a_compiled_run_goes_on_as_if_never_stopped(tmp_path, task):
    """In new processes, since this one would still know its kernels."""
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
    assert what_counts(path) == what_counts(tmp_path / "whole")
    weights = (
        tmp_path / name / "model/model.safetensors" for name in ("whole", "part")
    )
    assert next(weights).read_bytes() == next(weights).read_bytes()


def test_the_time_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "run"
    with pytest.raises(Stopped):
        stop_after(begin_or_resume(path, small_settings()), 20).train()
    last = json.loads((path / "metrics.jsonl").read_text().splitlines()[-1])
    result = train_here(path, small_settings())
    assert result["seconds"] > last["seconds"] > 0
    assert result["cpu_seconds"] > last["cpu_seconds"] > 0


def test_seeds_differ_and_repeat(whole, tmp_path):
    train_here(tmp_path / "same", small_settings())
    train_here(tmp_path / "other", small_settings(seed=1))
    assert what_counts(tmp_path / "same") == what_counts(whole)
    assert what_counts(tmp_path / "other") != what_counts(whole)


def test_the_dropout_of_a_step_is_its_own(tmp_path):
    """With one batch and no learning, only dropout can tell two steps apart."""
    settings = small_settings(
        learning_rate=1e-30, examples=7, batch_size=7, dropout=0.5, steps=9
    )
    train_here(tmp_path / "run", settings)
    losses = [x["loss"] for x in what_counts(tmp_path / "run") if "loss" in x]
    assert len(set(losses)) == 9


def test_a_full_disk_is_named_and_older_checkpoints_are_whole(whole, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(Stopped):
        stop_after(begin_or_resume(path, small_settings()), 4).train()
    run = begin_or_resume(path, small_settings())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))  # of a file
    try:
        with pytest.raises(
            RunError, match=r"of step 6 cannot be written: .*too large.*make room"
        ):
            run.train()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    states = sorted(path.name for path in (path / "checkpoints").iterdir())
    assert states == ["step-00000003", "step-00000004"]
    train_here(path, small_settings())
    assert what_counts(path) == what_counts(whole)


@pytest.fixture
def stopped(tmp_path):
    """A run with two checkpoints."""
    path = tmp_path / "run"
    with pytest.raises(Stopped):
        stop_after(begin_or_resume(path, small_settings()), 7).train()
    return path


@pytest.mark.parametrize("damage", ["truncate", "change", "remove", "json", "format"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it(stopped, damage):
    state = stopped / "checkpoints/step-00000007"
    tensors, facts = state / "training.safetensors", state / "state.json"
    if damage == "truncate":
        os.truncate(tensors, 1000)
    elif damage == "change":
        tensors.write_bytes(tensors.read_bytes()[:-1] + b"?")
    elif damage == "remove":
        tensors.unlink()
    elif damage == "json":
        os.truncate(facts, 20)
    else:
        facts.write_text('{"format": "another"}')
    with pytest.raises(RunError, match=r"step-00000007 .*Remove it .*step-00000006"):
        train_here(stopped, small_settings())
    for file in state.iterdir():
        file.unlink()
    state.rmdir()
    train_here(stopped, small_settings())


def test_a_checkpoint_of_another_model_is_named(stopped):
    config = stopped / "config.json"
    values = json.loads(config.read_text())
    config.write_text(json.dumps({**values, "d_ff": 26}))
    forget_settings(stopped)
    with pytest.raises(RunError, match=r"of another model: .* is \(.*\), not \("):
        train_here(stopped, small_settings())


def test_nan_stops_the_run_and_leaves_the_last_checkpoint(tmp_path):
    path = tmp_path / "run"
    run = begin_or_resume(path, small_settings())

    def poison(report):
        if report.step == 10:
            with torch.no_grad():
                next(run.model.parameters())[0] = math.nan

    run.callback = poison
    with pytest.raises(FloatingPointError, match=r"step 11: the loss is nan"):
        run.train()
    newest = max((path / "checkpoints").iterdir())
    assert newest.name == "step-00000009"
    tensors = load_file(newest / "training.safetensors")
    assert all(tensor.isfinite().all() for tensor in tensors.values())


def test_a_folder_in_use_is_not_overwritten(whole, tmp_path):
    with pytest.raises(RunError, match="has a run in it: go on with --resume"):
        RunFolder.create(whole, small_settings())
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="is not empty"):
        RunFolder.create(tmp_path, small_settings())
    with pytest.raises(RunError, match="has no run in it"):
        RunFolder.open(tmp_path)
    with pytest.raises(RunError, match="cannot be written to"):
        RunFolder.create(tmp_path / "letter.txt", small_settings())


def test_a_config_changed_by_hand_is_named(tmp_path):
    folder = RunFolder.create(tmp_path / "run", small_settings())
    for text, message in [
        ("{", "is not JSON, or truncated"),
        ("[]", "does not hold an object"),
        ('{"files": []}', "task"),
        (json.dumps({**dataclasses.asdict(small_settings()), "seed": -1}), "seed"),
    ]:
        folder.config.write_text(text)
        with pytest.raises(RunError, match=message):
            folder.settings()


@pytest.mark.parametrize("part", ["mask", "scale", "positions"])
def test_a_run_without_a_part_learns_otherwise(whole, tmp_path, part):
    train_here(tmp_path / "run", small_settings(without=(part,), steps=7))
    ours, theirs = what_counts(tmp_path / "run"), what_counts(whole)
    assert ours[0]["loss"] != pytest.approx(theirs[0]["loss"], rel=1e-6)


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
    ],
)
def test_every_setting_reaches_the_training(whole, tmp_path, changes):
    until = 9  # the rest, its checkpoints and its drawings would show no more
    stop_run_after(tmp_path / "run", small_settings(**changes), until)
    ours, theirs = what_counts(tmp_path / "run"), what_counts(whole)
    theirs = [line for line in theirs if line["step"] <= until]
    assert len(ours) == len(theirs)
    assert ours != theirs


def test_where_no_setting_differs_the_training_is_the_same(whole, tmp_path):
    """Else the test above would see nothing."""
    stop_run_after(tmp_path / "run", small_settings(), 9)
    theirs = [line for line in what_counts(whole) if line["step"] <= 9]
    assert what_counts(tmp_path / "run") == theirs


@pytest.mark.parametrize("name", ["bias", "norm_first", "compile"])
def test_flags_are_true_or_false(name):
    with pytest.raises(ValueError, match=rf"{name} \('no'\) must be of type bool"):
        RunSettings.of("copy", **{name: "no"})


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
