"""Checkpoints of a training: from any of them it goes on as if never stopped."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tformer.checks import require
from tformer.files import read_json, sha256_of, wait_for_disk, write_json
from tformer.runs.folder import RunError, remove_folder
from tformer.training.processes import process_rank
from tformer.training.shards import (
    full_state,
    load_full_state,
    load_shards,
    save_shards,
)

FORMAT = "tformer training state, version 1"
STEP_FOLDER = re.compile(r"step-\d+")
TENSORS, SHARDS, FACTS = "training.safetensors", "shards", "state.json"


def save_state(
    folder: Path,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    facts: dict[str, Any],
    keep: int,
    sharded: bool = False,
) -> None:
    """Write a checkpoint into a folder beside the older ones, then remove the oldest.

    All is written under another name, waited for until it is on the disk, and renamed:
    whenever the process is killed, every folder called step-… is whole.

    Args:
        folder: of the checkpoints; with several processes, one that all of them see.
        step: after which it is made.
        model: its weights are saved, as `distribute` returned it.
        optimizer: its running means are.
        facts: what else JSON shall keep.
        keep: how many checkpoints to keep, this one included.
        sharded: each process writes its own part, where no process could hold all.

    Raises:
        RunError: it cannot be written, because the disk is full. Older ones are whole.
    """
    path = folder / f"step-{step:08d}"
    new = folder / f".{path.name}.new"
    try:
        if process_rank() == 0:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
        if sharded:
            save_shards(new / SHARDS, model, optimizer)
        else:
            tensors = full_state(model, optimizer)
        if process_rank() > 0:
            return
        digest = None
        if not sharded:
            require("safetensors.torch").save_file(tensors, new / TENSORS)
            (new / TENSORS).chmod(0o644)  # safetensors lets only the owner read
            digest = sha256_of(new / TENSORS)
        for file in new.rglob("*.safetensors"):
            wait_for_disk(file)
        own = {"format": FORMAT, "step": step, "sha256": digest}
        write_json(new / FACTS, {**own, **facts})
        if path.exists():  # made before the run went back to an older one
            remove_folder(path)
        os.replace(new, path)
        wait_for_disk(folder)
    except (OSError, require("safetensors").SafetensorError) as error:
        shutil.rmtree(new, ignore_errors=True)
        raise RunError(
            f"the checkpoint of step {step} cannot be written: {error}. Older ones in "
            f"{folder} are whole: make room, and go on with --resume"
        ) from error
    for old in saved_states(folder)[:-keep]:
        remove_folder(old)


def saved_states(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, the oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if STEP_FOLDER.fullmatch(path.name))


def clean_up(folder: Path) -> None:
    """Remove what a kill has left half-written, or half-removed."""
    for pattern in (".*.new", ".*.old"):
        for path in folder.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def load_state(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Load a checkpoint into a model and its optimizer, on any number of processes.

    Args:
        path: the folder of the checkpoint.
        model: as `distribute` returned it.
        optimizer: of its parameters.

    Returns:
        What `save_state` was given as facts, and "step".

    Raises:
        RunError: a file is missing, truncated or changed, or of another model. The
            message names it, and an older checkpoint if there is one.
    """
    try:
        facts = read_json(path / FACTS, format=FORMAT, types={"step": int})
        if (path / SHARDS).exists():
            load_shards(path / SHARDS, model, optimizer)
            return facts
        tensors = {}
        if process_rank() == 0:
            if sha256_of(path / TENSORS) != facts["sha256"]:
                raise RunError(f"{path / TENSORS} is truncated or changed")
            tensors = require("safetensors.torch").load_file(path / TENSORS)
        load_full_state(model, tensors, optimizer)
        return facts
    except (RunError, OSError, ValueError, KeyError) as error:
        message = f"{path} cannot be loaded: {error}"
        older = [other for other in saved_states(path.parent) if other < path]
        if older:
            message += f". Remove it to go on from {older[-1].name}, the one before it"
        raise RunError(message) from error
