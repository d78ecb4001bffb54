"""`tformer train`: begin a run, or go on with one."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import typer

from tformer.cli.errors import INTERRUPTED
from tformer.cli.options import Device, given, with_settings
from tformer.runs.folder import RunError, RunFolder
from tformer.runs.rules import PRESETS
from tformer.runs.run import Run, Stopped
from tformer.runs.settings import RunSettings
from tformer.training.distributed import running
from tformer.training.processes import num_processes, process_rank, wait_for_all


@with_settings
def train(
    task: Annotated[
        str | None,
        typer.Argument(
            help=f"What to learn: {', '.join(PRESETS)}. `tformer info` says more.",
            show_default=False,
        ),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="One text file for text; two for pairs, of which line n of the first "
            "is translated by line n of the second. Six for pairs with files of their "
            "own for validation and test: training, validation, test, two of each.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder of the run, new or empty."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder.")
    ] = None,
    device: Device = "auto",
    strategy: Annotated[
        Literal["ddp", "fsdp"],
        typer.Option(
            help="With several processes under torchrun: ddp (each holds the model) or "
            "fsdp (each holds a part of it)."
        ),
    ] = "ddp",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Threads of the CPU; torch chooses by itself."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Show no progress.")] = False,
    **settings: Any,
) -> None:
    """Train a model. The run is a folder: settings, metrics, checkpoints, the model.

    tformer train dates --out runs/dates

    tformer train text book.txt --out runs/book --vocabulary bpe

    tformer train text book.txt --out runs/today --positions rotary --norm rms

    tformer train pairs text.de text.en --out runs/de-en --max-len 200

    tformer train --resume runs/dates

    torchrun --nproc-per-node 2 -m tformer train dates --out runs/dates
    """
    if (resume is None) == (task is None):
        raise typer.BadParameter("name a task to begin with, or a run to --resume")
    changes = given(settings)
    if resume is not None and (changes or out is not None):
        name = next(iter(changes), "out").replace("_", "-")
        raise typer.BadParameter(
            f"--{name} cannot be given with --resume: a run goes on as it began"
        )
    if threads is not None:
        torch.set_num_threads(threads)
    with running(device) as chosen:
        if resume is not None:
            folder = RunFolder.open(resume)
        else:
            folder = _begun(task or "", files or [], changes, out)
        first = process_rank() == 0
        try:
            run = Run(
                folder,
                device=chosen,
                strategy=strategy if num_processes() > 1 else "none",
                progress=not quiet,
            )
            result = run.train()
        except (Stopped, KeyboardInterrupt) as stop:
            if first:
                how = f"tformer train --resume {shlex.quote(str(folder.path))}"
                said = str(stop) or "interrupted: steps since the last save are lost"
                typer.echo(f"{said}; go on with: {how}", err=True)
            raise SystemExit(INTERRUPTED) from None
        except Exception:
            if resume is None and first:
                folder.discard()  # so that the same command, mended, finds room
            raise
        if first:
            for name, value in result.items():
                if name.startswith("test_"):
                    typer.echo(f"{name} {value}")
            typer.echo(f"run {folder.path}")


def _begun(
    task: str, files: list[Path], changes: Mapping[str, Any], out: Path | None
) -> RunFolder:
    if out is None:
        raise typer.BadParameter("--out must name the folder of the run")
    names = tuple(str(file.resolve()) for file in files)
    try:
        settings = RunSettings.of(task, files=names, **changes)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for file in files:
        if not file.is_file():  # a pipe could be read only once
            wrong = "is not a regular file" if file.exists() else "no such file"
            raise RunError(f"{file}: {wrong}")
    # The one who made the folder holds its lock until the run is over.
    made = RunFolder.create(out, settings) if process_rank() == 0 else None
    wait_for_all()
    return made or RunFolder.open(out)
