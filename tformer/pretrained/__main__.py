"""Take a model into the package from its run: `python -m tformer.pretrained RUN`.

`make model` makes the runs first: `tformer train dates --out runs/dates`, and the same
for dates as typed, with the mask and without. What is kept is float16, half the size,
and is measured as it is kept.
"""

import dataclasses
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import nn

from tformer.files import Json
from tformer.runs.data import task_data
from tformer.runs.folder import RunError, read_kept_json
from tformer.runs.metrics import read_metrics, test_scores
from tformer.runs.model import load_trained
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint, save_checkpoint

STORED = torch.float16


def keep(run: Path, folder: Path) -> Json:
    """Write the model of a finished run into a folder, under the name of its task.

    The manifest that is returned has the settings, the result and the looks of the run,
    how good what is stored is, and the commands that make it again.
    """
    trained = load_trained(run)
    if trained.settings is None or trained.folder is None:
        raise RunError(f"{run} is not the folder of a run")
    if not trained.manifest:
        raise RunError(f"the run in {run} is not finished")
    with torch.no_grad():
        for parameter in trained.model.parameters():  # as they are loaded again
            parameter.copy_(parameter.to(STORED))
    name = "-without-".join((trained.settings.task, *trained.settings.without))
    lines = read_metrics(trained.folder.metrics)
    facts = {
        "settings": trained.manifest["settings"],
        "result": read_kept_json(trained.folder.result),
        "validation": [line for line in lines if "validation_loss" in line],
        "babel": version("babel"),
        "stored": stored_scores(trained.model, trained.settings),
        "repeat": commands(trained.settings, f"runs/{name}"),
    }
    # Whole, as the run has saved it: what was measured may lack a part.
    whole = load_checkpoint(trained.folder.model).model.to(STORED)
    vocabulary = trained.vocabulary
    return save_checkpoint(folder / name, whole, vocabulary=vocabulary, facts=facts)


@torch.no_grad()
def stored_scores(model: nn.Module, settings: RunSettings) -> dict[str, object]:
    """Return `test_scores`, and the share of tokens right after the true ones."""
    data = task_data(dataclasses.replace(settings, examples=1))  # nothing to train on
    scores = test_scores(model, data, torch.device("cpu"))
    right = asked = 0
    for batch in data.test:
        real = batch.targets != data.vocabulary.pad_id  # (B, T)
        said = model(*batch.inputs).argmax(dim=-1)  # (B, T)
        right += int((said == batch.targets)[real].sum())
        asked += int(real.sum())
    dtype = str(STORED).removeprefix("torch.")
    return {"dtype": dtype, **scores, "test_token_accuracy": right / asked}


def commands(settings: RunSettings, run: str) -> list[str]:
    """Write the commands that make a model again, in this folder."""
    preset = RunSettings.of(settings.task).flat()
    options = []
    for name, value in settings.flat().items():
        if value != preset[name]:
            for each in value if isinstance(value, list | tuple) else [value]:
                options += [f"--{name.replace('_', '-')}", str(each)]
    train = ["tformer", "train", settings.task, *options, "--threads", "1"]
    return [
        shlex.join([*train, "--out", run]),
        shlex.join(["python", "-m", "tformer.pretrained", run]),
    ]


def main(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    out: Path = Path(__file__).parent,
) -> None:
    """Take the model of a run into the package."""
    try:
        manifest = keep(run, out)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    stored = manifest["stored"]
    typer.echo(
        f"{run}: exact match {100 * stored['test_exact_match']:.2f} %, "
        f"{100 * stored['test_token_accuracy']:.2f} % of the tokens"
    )


if __name__ == "__main__":
    typer.run(main)
