"""What is kept of a run: its settings, result, looks and evaluations, in one file."""

import dataclasses
import hashlib
import itertools
import json
import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tformer.runs import parts
from tformer.runs.evaluations import saved_evaluations
from tformer.runs.folder import RunFolder, read_kept_json
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.runs.unchanged import check_unchanged

FILES = "results"
OF_PARTS = "parts"  # a folder there: of models that were built with parts, many runs
LONGEST_NAME = 60  # of a file; one with many settings gets a hash of them
LAST_STEPS = 100  # the loss of the training is their mean
Kept = dict[str, Any]


def keep(docs: Path, runs: Iterable[Path]) -> None:
    """Write a file for each run that is finished.

    Raises:
        RunError: a folder has no finished run in it.
    """
    for path in runs:
        folder = RunFolder.open(path)
        kept = summary(folder)
        of_parts = kept["settings"]["model"] == parts.MODEL
        file = docs / FILES / (OF_PARTS if of_parts else "") / f"{run_name(kept)}.json"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def summary(folder: RunFolder) -> Kept:
    """Say what a run was asked, what came of it, and how it got there.

    Paths of own files are cut to their names: they are nobody's business.
    """
    settings = folder.settings()
    check_unchanged(folder, settings)
    files = tuple(Path(file).name for file in settings.files)
    result = read_kept_json(folder.result)
    lines = read_metrics(folder.metrics) if folder.metrics.exists() else []
    kept = {
        "settings": dataclasses.asdict(dataclasses.replace(settings, files=files)),
        "result": result,
        "looks": [line for line in lines if "validation_loss" in line],
    }
    if steps := [line for line in lines if "loss" in line]:
        kept["training"] = training(lines, steps)
    if evaluations := saved_evaluations(folder):
        kept["evaluations"] = evaluations
    return kept


def training(lines: list[Kept], steps: list[Kept]) -> Kept:
    """Measure a training by its metrics: the loss at its end, and how fast it was.

    The speed is that of the steps alone: those before which the run looked at the
    validation, or was begun, are left out.
    """
    tokens, seconds = 0, 0.0
    for before, line in itertools.pairwise(lines):
        if "loss" in before and "loss" in line:
            tokens += line["tokens"]
            seconds += line["cpu_seconds"] - before["cpu_seconds"]
    return {
        "loss": statistics.mean(line["loss"] for line in steps[-LAST_STEPS:]),
        "loss_steps": min(LAST_STEPS, len(steps)),
        "tokens": sum(line["tokens"] for line in steps),
        "tokens_per_cpu_second": tokens / seconds if seconds else None,
    }


def run_name(kept: Kept) -> str:
    """Name a run by what it was asked: its task, what is not the preset, its seed."""
    settings = kept["settings"]
    baseline = kept["result"].get("baseline", "")
    changed = [
        # A number of a part says nothing without the part's name.
        f"{name}-{value:g}"
        if name in parts.OF_GPT and not isinstance(value, str)
        else str(value)
        for name, value in changes(settings).items()
    ]
    words = [settings["task"], baseline, *changed]
    if settings["files"]:
        words = [word for word in words if word]
    text = "-".join([*filter(None, words), str(settings["seed"])])
    text = re.sub(r"[^\w.]+", "-", text).strip("-").lower()
    if len(text) <= LONGEST_NAME:
        return text
    told = json.dumps({**changes(settings), "baseline": baseline}, sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    return f"{settings['task']}-{digest}-{settings['seed']}"


def changes(settings: Kept) -> Kept:
    """List the settings that differ from the preset of the task, but for the seed.

    Of a model with parts they differ from a GPT's. Its name is left out, as on the
    command line, where a part is named.
    """
    files, model = tuple(settings["files"]), settings.get("model")
    of_parts = {"model": model} if model == parts.MODEL else {}
    preset = dataclasses.asdict(
        RunSettings.of(settings["task"], files=files, **of_parts)
    )
    changed: Kept = {}
    for name, value in settings.items():
        value = tuple(value) if isinstance(value, list) else value
        if name != "seed" and value != preset[name]:
            changed[name] = " ".join(value) if isinstance(value, tuple) else value
    if of_parts and not changed.keys() & parts.OF_GPT.keys():
        changed = {**of_parts, **changed}
    return changed


def kept_results(docs: Path) -> list[Kept]:
    """Read the files of all runs, in the order of their names."""
    files = [
        f
        for glob in ("*.json", f"{OF_PARTS}/*.json")
        for f in (docs / FILES).glob(glob)
    ]
    files.sort(key=lambda file: file.name)
    return [json.loads(file.read_text("utf-8")) for file in files]
