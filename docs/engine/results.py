"""The page of results: gathered from the folders of runs, and never typed.

`python -m engine results RUN …` keeps what a run was asked and what came of it in
docs/results/, one file a run, and writes docs/results.md from all files that are there.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.results_page import render
from tformer.runs.folder import RunFolder, read_own_json
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings

PAGE, FILES = "results.md", "results"


def keep(docs: Path, runs: Iterable[Path]) -> None:
    """Write a file for each run that is finished.

    Raises:
        RunError: a folder has no finished run in it.
    """
    for path in runs:
        folder = RunFolder.open(path)
        kept = summary(folder)
        name = run_name(kept)
        file = docs / FILES / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def summary(folder: RunFolder) -> dict[str, Any]:
    """Say what a run was asked, what came of it, and how it got there.

    Paths of own files are cut to their names: they are nobody's business.
    """
    settings = folder.settings()
    files = tuple(Path(file).name for file in settings.files)
    result = read_own_json(folder.result)
    looks = [line for line in read_metrics(folder.metrics) if "validation_loss" in line]
    return {
        "settings": dataclasses.asdict(dataclasses.replace(settings, files=files)),
        "result": result,
        "looks": looks,
    }


def run_name(kept: dict[str, Any]) -> str:
    """Name a run by what it was asked: its task, what is not the preset, its seed."""
    settings = kept["settings"]
    words = [settings["task"], *map(str, changes(settings).values())]
    text = "-".join([*words, str(settings["seed"])])
    return re.sub(r"[^\w.]+", "-", text).strip("-").lower()


def changes(settings: dict[str, Any]) -> dict[str, Any]:
    """List the settings that differ from the preset of the task, but for the seed."""
    files = tuple(settings["files"])
    preset = dataclasses.asdict(RunSettings.of(settings["task"], files=files))
    changed: dict[str, Any] = {}
    for name, value in settings.items():
        value = tuple(value) if isinstance(value, list) else value
        if name != "seed" and value != preset[name]:
            changed[name] = " ".join(value) if isinstance(value, tuple) else value
    return changed


def kept_results(docs: Path) -> list[dict[str, Any]]:
    """Read the files of all runs, in the order of their names."""
    files = sorted((docs / FILES).glob("*.json"))
    return [json.loads(file.read_text("utf-8")) for file in files]


def page(docs: Path) -> str:
    """Make the page from what is kept."""
    results = kept_results(docs)
    return render([{**kept, "changes": changes(kept["settings"])} for kept in results])


def write(docs: Path, runs: Iterable[Path] = ()) -> None:
    """Keep these runs, and write the page."""
    keep(docs, runs)
    (docs / PAGE).write_text(page(docs), "utf-8")
