"""A run so small that it takes half a second, for the tests of runs."""

import json
from pathlib import Path

import pytest
import torch

from tformer.runs.folder import RunFolder
from tformer.runs.metrics import read_metrics
from tformer.runs.run import Run, Stopped
from tformer.runs.settings import RunSettings

SMALL = {
    "d_model": 10,
    "num_heads": 2,
    "num_layers": 1,
    "d_ff": 14,
    "max_len": 23,
    "dropout": 0.1,
    "examples": 130,
    "batch_size": 11,
    "steps": 37,
    "warmup_steps": 5,
    "evaluate_every": 7,
    "evaluate_examples": 9,
    "test_examples": 13,
    "save_every": 3,
}


def small_settings(task: str = "reverse", **changes) -> RunSettings:
    return RunSettings.of(task, **{**SMALL, **changes})


SHORT = small_settings(steps=12)


def small_text_settings(folder: Path, **changes) -> RunSettings:
    """Settings of a run on a text, which is written into a folder."""
    book = folder / "book.txt"
    book.write_text("to be or not to be\n" * 90)
    sizes = {"d_model": 10, "num_heads": 2, "num_layers": 1, "max_len": 11}
    few = {"steps": 12, "warmup_steps": 2, "evaluate_every": 6, "save_every": 4}
    given = {**sizes, **few, "test_examples": 7, **changes}
    return RunSettings.of("text", files=(str(book),), **given)


def small_pairs_settings(folder: Path, **changes) -> RunSettings:
    """Settings of a run on two parallel files, which are written into a folder."""
    lines = "".join(f"{a} {b}\n" for a in "abcdefghijklmnop" for b in "abcdefgh")
    for name in ("one", "two"):
        (folder / name).write_text(lines)
    files = tuple(str(folder / name) for name in ("one", "two"))
    sizes = {"d_model": 10, "num_heads": 2, "num_layers": 1, "max_len": 9}
    few = {"steps": 9, "warmup_steps": 2, "save_every": 3}
    return RunSettings.of("pairs", files=files, **{**sizes, **few, **changes})


def stop_after(path: Path, settings: RunSettings, step: int) -> None:
    """Leave a run behind that was stopped after a step."""
    torch.set_num_threads(1)
    run = begin_or_resume(path, settings)
    run.callback = lambda report: report.step == step and run.stop()
    with pytest.raises(Stopped):
        run.train()


def begin_or_resume(path: Path, settings: RunSettings) -> Run:
    folder = RunFolder(path)
    if not folder.config.exists():
        folder = RunFolder.create(path, settings)
    return Run(folder, progress=False)


def train_here(path: Path, settings: RunSettings) -> dict:
    torch.set_num_threads(1)
    return begin_or_resume(path, settings).train()


def what_counts(path: Path) -> list[dict]:
    """All metrics but the times."""
    lines = read_metrics(path / "metrics.jsonl")
    return [{k: v for k, v in x.items() if "seconds" not in k} for x in lines]


def same_run(one: Path, two: Path) -> None:
    """Hold the numbers and the model of a run to those of another, bit for bit."""
    assert what_counts(one) == what_counts(two)
    for file in ("model/model.safetensors", "model/config.json"):
        assert (one / file).read_bytes() == (two / file).read_bytes()


def change(path: Path, **changes) -> None:
    config = path / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **changes}))


def go_on(path: Path) -> dict:
    return Run(RunFolder.open(path), progress=False).train()


def flip(path: Path, place: int) -> None:
    """Change a bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
