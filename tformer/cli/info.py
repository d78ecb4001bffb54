"""`tformer info`: what is here, and what a run or a model is."""

import shlex
import warnings
from pathlib import Path
from typing import Annotated

import torch
import typer

import tformer
from tformer.cli.downloaded import downloaded_facts
from tformer.models.building import config_of
from tformer.pretrained import pretrained_names
from tformer.runs.checkpoints import saved_states
from tformer.runs.downloaded import is_downloaded
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.metrics import parameter_counts, read_metrics
from tformer.runs.model import check_unchanged, is_model, load_trained
from tformer.runs.rules import OWN_FILES, PRESETS
from tformer.runs.settings import RunSettings
from tformer.tasks import TASKS


def info(
    what: Annotated[
        str | None,
        typer.Argument(
            help="The folder of a run or of a model, a model of the package, or a "
            "task; without it, what there is.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what there is: tasks and their presets, models, devices; or what a run is.

    tformer info  ·  tformer info dates  ·  tformer info runs/dates

    Of a downloaded folder no weight is read: tformer info Qwen3-0.6B
    """
    if what is None:
        _everything()
    elif Path(what).is_dir():
        _folder(Path(what))
    elif what in PRESETS:
        files = [""] * min(OWN_FILES.get(what, (0,)))
        typer.echo(f"task {what}: {_described(what)}")
        _settings(RunSettings.of(what, files=tuple(files)))
        if what in pretrained_names():
            _model(what)
    elif what in pretrained_names() or what.endswith(".safetensors"):
        _model(what)
    else:
        raise RunError(
            f"{what} is neither a folder, a .safetensors file, a model of the package "
            f"({', '.join(pretrained_names())}), nor a task ({', '.join(PRESETS)})"
        )


def _folder(path: Path) -> None:
    if is_model(path):
        _model(str(path))
    elif is_downloaded(path):
        for name, value in downloaded_facts(path).items():
            _show(name, value) if name else typer.echo(value)
    else:
        _run(RunFolder.open(path))


def _everything() -> None:
    typer.echo(f"tformer {tformer.__version__}, torch {torch.__version__}")
    devices = ["cpu"] + ["mps"] * torch.backends.mps.is_available()
    devices += [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    typer.echo(f"devices: {', '.join(devices)}")
    typer.echo(f"models of the package: {', '.join(pretrained_names())}")
    typer.echo("tasks:")
    for task in PRESETS:
        typer.echo(f"  {task:13} {_described(task)}")


def _described(task: str) -> str:
    own = {
        "text": "your own text file, for a language model",
        "pairs": "your own two parallel files, for translation",
    }
    return own.get(task) or TASKS[task].description


def _show(name: str, value: object) -> None:
    typer.echo(f"  {name:18} {value}")


def _settings(settings: RunSettings) -> None:
    for name, value in settings.flat().items():
        if name not in ("task", "files") and value not in (None, ()):
            _show(name.replace("_", "-"), value)


def _run(folder: RunFolder) -> None:
    settings = folder.settings()
    try:
        check_unchanged(folder, settings)
    except (OSError, ValueError) as error:  # to look at the rest is allowed
        warnings.warn(str(error), stacklevel=1)
    typer.echo(f"run {folder.path}: {' '.join((settings.task, *settings.files))}")
    _settings(settings)
    lines = read_metrics(folder.metrics)
    steps = [line["step"] for line in lines if "loss" in line]
    typer.echo(f"steps made: {steps[-1] if steps else 0} of {settings.steps}")
    states = ", ".join(path.name for path in saved_states(folder.checkpoints))
    typer.echo(f"checkpoints: {states or 'none'}")
    if folder.result.exists():
        for name, value in read_kept_json(folder.result).items():
            typer.echo(f"  {name} {value}")
    else:
        path = shlex.quote(str(folder.path))
        typer.echo(f"not finished: tformer train --resume {path}")


def _model(name: str) -> None:
    trained = load_trained(name)
    counts, kind = parameter_counts(trained.model), type(trained.model).__name__
    active = counts.get("active_parameters")
    used = "" if active is None else f", of which a token uses {active:,}"
    typer.echo(f"model {name}: a {kind} of {counts['parameters']:,} parameters{used}")
    for field, value in config_of(trained.model).items():
        _show(field, value)
    _show("vocabulary", f"{len(trained.vocabulary)} tokens")
