"""Take a model into the package from its run: `python -m tformer.pretrained RUN`.

`make model` makes the runs first: `tformer train dates --out runs/dates`, and the same
without the mask. What is kept is float16, half the size, and is measured as it is kept.
"""

import argparse
import dataclasses
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tformer.runs.batches import RunData
from tformer.runs.data import task_data
from tformer.runs.evaluation import test_scores
from tformer.runs.folder import RunError, read_kept_json
from tformer.runs.metrics import read_metrics
from tformer.runs.settings import RunSettings
from tformer.runs.trained import load_trained
from tformer.training.checkpoint import save_checkpoint

STORED = torch.float16


def keep(run: Path, folder: Path) -> dict[str, Any]:
    """Write the model of a finished run under the name of its task, as float16.

    Args:
        run: the folder of the run.
        folder: in which its folder is made, such as that of this package.

    Returns:
        The manifest: the model's vocabulary; of the run its settings, its
        result and what it measured on the way; of what is stored how good it is; and
        the commands that make it again.

    Raises:
        RunError: there is no such run, or it is not finished.
    """
    trained = load_trained(run)
    if trained.settings is None or trained.folder is None:
        raise RunError(f"{run} is not the folder of a run")
    if not trained.manifest:
        raise RunError(f"the run in {run} is not finished")
    lines = read_metrics(trained.folder.metrics)
    round_weights(trained.model)
    facts = {
        "settings": trained.manifest["settings"],
        "result": read_kept_json(trained.folder.result),
        "validation": [line for line in lines if "validation_loss" in line],
        "babel": version("babel"),
        "stored": stored_scores(trained.model, trained.settings),
        "repeat": commands(trained.settings),
    }
    return save_checkpoint(
        folder / name_of(trained.settings),
        trained.model.to(STORED),
        vocabulary=trained.vocabulary,
        facts=facts,
    )


def name_of(settings: RunSettings) -> str:
    """Name a model by its task and what it was trained without."""
    return "-without-".join((settings.task, *settings.without))


@torch.no_grad()
def round_weights(model: nn.Module) -> None:
    """Give each weight the value that it has in a file of float16."""
    for parameter in model.parameters():
        parameter.copy_(parameter.to(STORED))


def stored_scores(model: nn.Module, settings: RunSettings) -> dict[str, Any]:
    """Measure what is stored on the held-out test, as at the end of the run.

    Args:
        model: with rounded weights, in float32, as it is loaded again.
        settings: of its run.

    Returns:
        The scores of `test_scores`, and how many tokens are right when the true ones
        before them are given.
    """
    few = dataclasses.replace(settings, examples=1)  # nothing is trained on
    data = task_data(few)
    return {
        "dtype": str(STORED).removeprefix("torch."),
        **test_scores(model, data, torch.device("cpu")),
        "test_token_accuracy": token_accuracy(model, data),
    }


@torch.no_grad()
def token_accuracy(model: nn.Module, data: RunData) -> float:
    """Compute the fraction of right tokens, with the true ones before each given."""
    right = asked = 0
    for batch in data.test:
        real = batch.targets != data.vocabulary.pad_id  # (B, T)
        said = model(*batch.inputs).argmax(dim=-1)  # (B, T)
        right += int((said == batch.targets)[real].sum())
        asked += int(real.sum())
    return right / asked


def commands(settings: RunSettings) -> list[str]:
    """Write the commands that make this model again."""
    preset = RunSettings.of(settings.task).flat()
    asked = settings.flat()
    options = []
    for name, value in asked.items():
        if value != preset[name]:
            values = value if isinstance(value, list | tuple) else [value]
            for each in values:
                options += [f"--{name.replace('_', '-')}", str(each)]
    run = f"runs/{name_of(settings)}"
    train = ["tformer", "train", settings.task, *options, "--threads", "1"]
    return [
        shlex.join([*train, "--out", run]),
        shlex.join(["python", "-m", "tformer.pretrained", run]),
    ]


def main() -> None:
    """Read the command line, and keep the model."""
    parser = argparse.ArgumentParser(
        prog="python -m tformer.pretrained",
        description="Take the model of a run into the package.",
    )
    parser.add_argument("run", type=Path, help="the folder of a finished run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    try:
        manifest = keep(options.run, options.out)
    except RunError as error:
        sys.exit(f"error: {error}")
    stored = manifest["stored"]
    sys.stdout.write(
        f"{options.run}: exact match {100 * stored['test_exact_match']:.2f} %, "
        f"{100 * stored['test_token_accuracy']:.2f} % of the tokens\n"
    )


if __name__ == "__main__":
    main()
