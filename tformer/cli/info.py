"""`tformer info`: what is here, and what a run or a model is."""

import shlex
import warnings
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

import tformer
from tformer.models.building import config_of
from tformer.models.transformer import Transformer
from tformer.pretrained import pretrained_names
from tformer.runs.checkpoints import saved_states
from tformer.runs.evaluation import parameter_counts
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.metrics import read_metrics
from tformer.runs.rules import PRESETS
from tformer.runs.settings import RunSettings
from tformer.runs.trained import check_unchanged, is_model, load_trained
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
    """
    if what is None:
        _everything()
    elif Path(what).is_dir():
        _model(what) if is_model(Path(what)) else _run(RunFolder.open(what))
    elif what in PRESETS and not what.endswith(".safetensors"):
        _task(what)
        if what in pretrained_names():
            _model(what)
    elif what in pretrained_names() or what.endswith(".safetensors"):
        _model(what)
    else:
        raise RunError(
            f"{what} is neither a folder, a .safetensors file, a model of the package "
            f"({', '.join(pretrained_names())}), nor a task ({', '.join(PRESETS)})"
        )


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


def _task(name: str) -> None:
    typer.echo(f"task {name}: {_described(name)}")
    files = {"text": ("…",), "pairs": ("…", "…")}.get(name, ())
    _settings(RunSettings.of(name, files=files))


def _settings(settings: RunSettings) -> None:
    for name, value in settings.flat().items():
        if name not in ("task", "files") and value not in (None, ()):
            typer.echo(f"  {name.replace('_', '-'):18} {value}")


def _run(folder: RunFolder) -> None:
    settings = folder.settings()
    try:
        check_unchanged(folder, settings)
    except RunError as error:  # to look is allowed
        warnings.warn(str(error), stacklevel=1)
    typer.echo(f"run {folder.path}: {' '.join((settings.task, *settings.files))}")
    _settings(settings)
    made = [x for x in _metrics(folder) if "loss" in x]
    typer.echo(f"steps made: {made[-1]['step'] if made else 0} of {settings.steps}")
    states = ", ".join(path.name for path in saved_states(folder.checkpoints))
    typer.echo(f"checkpoints: {states or 'none'}")
    if folder.saved_model():
        try:
            _cache(load_trained(folder.path).model)
        except RunError as error:  # to look at the rest is allowed
            warnings.warn(str(error), stacklevel=1)
    if folder.result.exists():
        for name, value in read_kept_json(folder.result).items():
            typer.echo(f"  {name} {value}")
    else:
        path = shlex.quote(str(folder.path))
        typer.echo(f"not finished: tformer train --resume {path}")


def _metrics(folder: RunFolder) -> list[dict[str, float]]:
    return read_metrics(folder.metrics) if folder.metrics.exists() else []


def _model(name: str) -> None:
    trained = load_trained(name)
    counts, kind = parameter_counts(trained.model), type(trained.model).__name__
    active = counts.get("active_parameters")
    used = "" if active is None else f", of which a token uses {active:,}"
    typer.echo(f"model {name}: a {kind} of {counts['parameters']:,} parameters{used}")
    for field, value in config_of(trained.model).items():
        typer.echo(f"  {field:18} {value}")
    typer.echo(f"  {'vocabulary':18} {len(trained.vocabulary)} tokens")
    _cache(trained.model)


def _cache(model: Any) -> None:
    """Say how much memory writing takes for one text as long as the context."""
    if not hasattr(model, "new_cache"):  # a BERT, which writes nothing
        return
    length = model.max_len
    whole = cache_bytes(model, length)
    more = cache_bytes(model, length + 1) - whole
    of = f"{length:,} tokens"
    if isinstance(model, Transformer):
        of, more = f"a source and a target of {of} each", more // 2
    kind = str(next(model.parameters()).dtype).removeprefix("torch.")
    typer.echo(
        f"  {'cache':18} {whole:,} bytes for {of} ({kind}); a further token takes "
        f"{more:,}"
    )


@torch.no_grad()
def cache_bytes(model: Any, length: int) -> int:
    """Measure the memory of a model's cache with room for one text, in bytes.

    An encoder-decoder keeps a source of as many tokens, too.

    Args:
        model: with `new_cache`.
        length: how many tokens there is room for.
    """
    cache, token = model.new_cache(length), torch.zeros(1, 1, dtype=torch.long)
    if isinstance(model, Transformer):
        memory = torch.zeros(1, length, model.d_model)
        memory = memory.to(next(model.parameters()).dtype)
        model.decode(token, memory, cache=cache)
    else:
        model(token, cache=cache)
    return int(cache.nbytes)
