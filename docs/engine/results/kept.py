"""What is kept of a run, in one file: settings, result, looks and evaluations."""

import dataclasses
import hashlib
import itertools
import json
import re
import statistics
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from engine.tables import Kept, KeptError, read_kept
from tformer.models.families.custom import PARTS
from tformer.runs.folder import RunFolder, read_kept_json
from tformer.runs.metrics import read_metrics, saved_evaluations
from tformer.runs.model import check_unchanged
from tformer.runs.rules import PARTED
from tformer.runs.settings import RunSettings

FILES = "results"
OF_PARTS = "parts"  # a folder there: of models that were built with parts, many runs
LONGEST_NAME = 60  # of a file; one with many settings gets a hash of them
LAST_STEPS = 100  # the loss of the training is their mean
OWN = "tformer"


class Run(Kept):
    """What was kept of a run."""

    def __init__(self, data: dict[str, Any], where: str) -> None:
        super().__init__(data, where)
        self.task = str(self["settings.task"])
        self.model = str(self.get("result.baseline", OWN))  # ours, or a baseline
        self.steps = int(self["settings.steps"])
        self.seed = int(self["settings.seed"])
        self.off = " ".join(self["settings.without"])  # parts it was trained without
        # Whether its model was built with parts, as the command line names them.
        self.of_parts = bool(self.get("settings.model") == PARTED)

    @property
    def evaluations(self) -> dict[str, Kept]:
        """What it was asked later, by name."""
        found = self.get("evaluations", {})
        return {name: Kept(x, f"{self.where}: {name}") for name, x in found.items()}

    @cached_property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the preset of the task, but for the seed.

        Of a model with parts they differ from a GPT's. Its name is left out, as on the
        command line, where a part is named.
        """
        try:
            asked = RunSettings.from_json(self["settings"])
        except (KeyError, TypeError, ValueError) as error:
            raise KeptError(f"{self.where}: settings: {error}") from None
        model = {"model": PARTED} if self.of_parts else {}
        preset = RunSettings.of(self.task, files=asked.files, **model).flat()
        changed = {
            name: " ".join(value) if isinstance(value, tuple) else value
            for name, value in asked.flat().items()
            # An older version has written fewer settings.
            if (name in self["settings"] or name in PARTS)
            and name != "seed"
            and value != preset[name]
        }
        return changed if changed.keys() & PARTS.keys() else model | changed

    @property
    def name(self) -> str:
        """What it was asked: its task, what is not the preset, its seed."""
        baseline = self.get("result.baseline", "")
        changed = [
            # A number of a part says nothing without the part's name.
            str(x) if isinstance(x, str) or name not in PARTS else f"{name}-{x:g}"
            for name, x in self.changes.items()
        ]
        words = [self.task, baseline, *filter(None, changed), str(self.seed)]
        text = re.sub(r"[^\w.]+", "-", "-".join(filter(None, words)))
        text = text.strip("-").lower()
        if len(text) <= LONGEST_NAME:
            return text
        told = json.dumps({**self.changes, "baseline": baseline}, sort_keys=True)
        digest = hashlib.sha256(told.encode()).hexdigest()[:8]
        return f"{self.task}-{digest}-{self.seed}"


def keep(docs: Path, runs: Iterable[Path]) -> None:
    """Write a file for each run; raise a RunError where one is not finished."""
    for path in runs:
        run = Run(summary(RunFolder.open(path)), str(path))
        folder = docs / FILES / (OF_PARTS if run.of_parts else "")
        folder.mkdir(exist_ok=True, parents=True)
        text = json.dumps(run.data, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{run.name}.json").write_text(text, "utf-8")


def summary(folder: RunFolder) -> dict[str, Any]:
    """Say what a run was asked, what came of it, and how it got there.

    Paths of own files are cut to their names: they are nobody's business.
    """
    settings = folder.settings()
    check_unchanged(folder, settings)
    files = tuple(Path(file).name for file in settings.files)
    lines = read_metrics(folder.metrics)
    kept = {
        "settings": dataclasses.replace(settings, files=files).flat(),
        "result": read_kept_json(folder.result),
        "looks": [line for line in lines if "validation_loss" in line],
    }
    if any("loss" in line for line in lines):
        kept["training"] = training(lines)
    if evaluations := saved_evaluations(folder):
        kept["evaluations"] = evaluations
    return kept


def training(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Measure a training by its metrics: the loss at its end, and how fast it was.

    The speed is that of the steps alone: those before which the run looked at the
    validation, or was begun, are left out.
    """
    steps = [line for line in lines if "loss" in line]
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


def kept_results(docs: Path) -> list[Run]:
    """Read the files of all runs, in the order of their names."""
    files = [*(docs / FILES).glob("*.json"), *(docs / FILES / OF_PARTS).glob("*.json")]
    files.sort(key=lambda file: file.name)
    return [Run(read_kept(f), str(f.relative_to(docs.parent))) for f in files]
