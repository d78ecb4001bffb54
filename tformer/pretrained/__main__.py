"""Take a model into the package from its run: `python -m tformer.pretrained RUN`.

`make model` makes the runs first: `tformer train dates --out runs/dates`, and the same
for dates as typed, with the mask and without. `make model-text` makes one that learns a
text file. What is kept is float16, half the size, and is measured as it is kept.
"""

import dataclasses
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from torch import nn

from tformer.data.text_files import split_by_position
from tformer.data.token_stream import open_token_stream
from tformer.files import Json, sha256_of
from tformer.runs.data import RunData, run_data
from tformer.runs.folder import RunError, read_kept_json
from tformer.runs.metrics import read_metrics, test_scores, text_bits_per_byte
from tformer.runs.model import load_trained
from tformer.runs.rules import OWN_FILES
from tformer.runs.settings import RunSettings
from tformer.training.checkpoint import load_checkpoint, save_checkpoint
from tformer.training.evaluation import MeanLoss

STORED = torch.float16
PRIORS = (1, 3, 10, 30, 100, 300)  # tokens that a bigram's prior counts for


def keep(run: Path, folder: Path) -> Json:
    """Write the model of a finished run into a folder.

    Its name is that of its task; of a run that read own files, that of the run.

    The manifest that is returned has the settings, the result and the looks of the run,
    how good what is stored is, and the commands that make it again. Of own files it has
    the names, lengths and hashes, and not where they lay.
    """
    trained = load_trained(run)
    if trained.settings is None or trained.folder is None:
        raise RunError(f"{run} is not the folder of a run")
    if not trained.manifest:
        raise RunError(f"the run in {run} is not finished")
    with torch.no_grad():
        for parameter in trained.model.parameters():  # as they are loaded again
            parameter.copy_(parameter.to(STORED))
    settings = trained.settings
    first = run.resolve().name if settings.task in OWN_FILES else settings.task
    name = "-without-".join((first, *settings.without))
    own = [
        {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in map(Path, settings.files)
    ]
    data = data_to_test(settings, trained.folder.path)
    named = dataclasses.replace(settings, files=tuple(str(x["name"]) for x in own))
    lines = read_metrics(trained.folder.metrics)
    facts = {
        "settings": {**trained.manifest["settings"], "files": list(named.files)},
        "result": read_kept_json(trained.folder.result),
        "validation": [line for line in lines if "validation_loss" in line],
        "stored": stored_scores(trained.model, data),
        "repeat": commands(named, f"runs/{name}"),
    }
    facts |= {"files": own} if own else {"babel": version("babel")}
    if settings.task == "text":
        facts["bigram"] = bigram_scores(trained.folder.path, data)
    # Whole, as the run has saved it: what was measured may lack a part.
    whole = load_checkpoint(trained.folder.model).model.to(STORED)
    vocabulary = trained.vocabulary
    return save_checkpoint(folder / name, whole, vocabulary=vocabulary, facts=facts)


def data_to_test(settings: RunSettings, run: Path) -> RunData:
    """Return the data of a run; of a task that draws them, none to train on."""
    if settings.task not in OWN_FILES:
        settings = dataclasses.replace(settings, examples=1)
    return run_data(settings, run)


@torch.no_grad()
def stored_scores(model: nn.Module, data: RunData) -> dict[str, object]:
    """Return `test_scores`, and the share of tokens right after the true ones."""
    scores = test_scores(model, data, torch.device("cpu"))
    right = asked = 0
    for batch in data.test:
        real = batch.targets != data.vocabulary.pad_id  # (B, T)
        said = model(*batch.inputs).argmax(dim=-1)  # (B, T)
        right += int((said == batch.targets)[real].sum())
        asked += int(real.sum())
    dtype = str(STORED).removeprefix("torch.")
    return {"dtype": dtype, **scores, "test_token_accuracy": right / asked}


def bigram_scores(run: Path, data: RunData) -> dict[str, float]:
    """Measure pairs of tokens, counted in the training text: what a model must beat.

    p(b | a) = (n(a, b) + m p(b)) / (n(a) + m). The m of PRIORS that is best on the test
    itself is taken, to the bigram's advantage.
    """
    V = len(data.vocabulary)
    stream = open_token_stream(run / "data/tokens.bin", data.vocabulary)
    ids = torch.from_numpy(split_by_position(stream)[0].astype(np.int64))
    pairs = torch.bincount(ids[:-1] * V + ids[1:], minlength=V * V).view(V, V).double()
    alone = torch.bincount(ids, minlength=V).double() + 1
    alone /= alone.sum()
    a = torch.cat([batch.inputs[0].flatten() for batch in data.test])
    b = torch.cat([batch.targets.flatten() for batch in data.test])
    counted, follows = pairs[a, b], pairs.sum(dim=1)[a]
    losses = (-((counted + m * alone[b]) / (follows + m)).log().mean() for m in PRIORS)
    best = MeanLoss(min(map(float, losses)), len(b))
    bits = text_bits_per_byte(data.vocabulary, data.test, best)
    return {"test_loss": best.loss, "test_bits_per_byte": bits}


def commands(settings: RunSettings, run: str) -> list[str]:
    """Write the commands that make a model again, in this folder."""
    preset = RunSettings.of(settings.task, files=settings.files).flat()
    options = []
    for name, value in settings.flat().items():
        if name != "files" and value != preset[name]:
            for each in value if isinstance(value, list | tuple) else [value]:
                options += [f"--{name.replace('_', '-')}", str(each)]
    train = ["tformer", "train", settings.task, *settings.files, *options]
    return [
        shlex.join([*train, "--threads", "1", "--out", run]),
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
    for name, value in manifest["stored"].items():
        typer.echo(f"{name} {f'{value:.6g}' if isinstance(value, float) else value}")


if __name__ == "__main__":
    typer.run(main)
