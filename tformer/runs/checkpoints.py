"""Checkpoints of a training: from any of them it resumes with the same numbers."""

import os
import re
import shutil
from pathlib import Path

import torch
from torch import nn

from tformer.checks import require
from tformer.files import (
    Json,
    check_sealed,
    read_json,
    sealed,
    sha256_of,
    wait_for_disk,
    write_json,
)
from tformer.runs.folder import RunError
from tformer.training.processes import process_rank
from tformer.training.shards import full_state, load_full_state, load_shards

FORMAT = "tformer training state, version 2"
STEP_FOLDER = re.compile(r"step-[0-9]+")
TENSORS, SHARDS, FACTS = "training.safetensors", "shards", "state.json"


def save_state(
    folder: Path,
    step: int,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    facts: Json,
    keep: int,
) -> None:
    """Write a checkpoint into a folder beside the older ones, then remove the oldest.

    All is written under another name, waited for until it is on the disk, and renamed:
    at any instant every folder called step-… is whole. All processes must call it, with
    the model as `distribute` returned it; the first one writes. So many checkpoints are
    kept, this one included.

    Raises:
        RunError: it cannot be written, because the disk is full. Older ones are whole.
    """
    tensors = full_state(model, optimizer)
    if process_rank() != 0:
        return
    path = folder / f"step-{step:08d}"
    new = folder / f".{path.name}.new"
    try:
        remove(new)
        # The run's own folder is not made: if it is gone, it was moved.
        folder.mkdir(exist_ok=True)
        wait_for_disk(folder.parent)
        new.mkdir()
        require("safetensors.torch").save_file(tensors, new / TENSORS)
        (new / TENSORS).chmod(0o644)  # safetensors lets only the owner read
        wait_for_disk(new / TENSORS)
        digests = {TENSORS: sha256_of(new / TENSORS)}
        own = {"format": FORMAT, "step": step, "sha256": digests}
        write_json(new / FACTS, sealed({**own, **facts}))
        remove(path)  # made before the run went back to an older one
        os.replace(new, path)
        wait_for_disk(folder)
    except (OSError, require("safetensors").SafetensorError) as error:
        remove(new)
        raise RunError(
            f"the checkpoint of step {step} cannot be written: {error}. Older ones in "
            f"{folder} are whole: make room, and go on with --resume"
        ) from error
    for old in saved_states(folder)[:-keep]:
        remove(old)


def saved_states(folder: Path) -> list[Path]:
    """List the checkpoints in a folder, the oldest first."""
    found = [path for path in folder.glob("*") if STEP_FOLDER.fullmatch(path.name)]
    return sorted(found, key=lambda path: (int(path.name[5:]), path.name))


def load_newest(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    scaler: torch.amp.GradScaler,
    data: str,
) -> int:
    """Load the newest checkpoint and return its step, or 0 if there is none.

    One of other data is refused; what a kill has left half-written is removed.
    """
    if process_rank() == 0:
        for path in [*folder.glob(".*.new"), *folder.glob(".*.old")]:
            remove(path)
    if not (saved := saved_states(folder)):
        return 0
    facts = load_state(saved[-1], model, optimizer)
    try:
        if facts.get("data", data) != data:
            changed = "its files, or what is kept of them, were changed"
            raise ValueError(f"the run's data are no longer its own: {changed}")
        scaler.load_state_dict(facts["scaler"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise refusal(saved[-1], error) from error
    return int(facts["step"])


def load_state(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> Json:
    """Load a checkpoint, on any number of processes, and return its `read_facts`.

    Raises:
        RunError: a file is missing, truncated or changed, or of another model. The
            message names it, and an older checkpoint if there is one.
    """
    facts = read_facts(path)
    try:
        for name, digest in facts["sha256"].items():
            if sha256_of(path / name) != digest:
                raise ValueError(f"{path / name} is truncated or changed")
        if (path / SHARDS).exists():  # as older versions wrote it under FSDP
            load_shards(path / SHARDS, model, optimizer)
            return facts
        load = require("safetensors.torch").load_file
        tensors = load(path / TENSORS) if process_rank() == 0 else {}
        load_full_state(model, tensors, optimizer)
    except (OSError, ValueError, require("safetensors").SafetensorError) as error:
        raise refusal(path, error) from error
    return facts


def read_facts(path: Path) -> Json:
    """Read what `save_state` was given as facts, and "step"; errors as `load_state`."""
    try:
        types = {"step": int, "sha256": dict}
        facts = read_json(path / FACTS, format=FORMAT, types=types)
        check_sealed(path / FACTS, facts)
        if facts["step"] != int(path.name[5:]):
            raise ValueError(f"{path / FACTS} is of step {facts['step']}")
    except (OSError, ValueError) as error:
        raise refusal(path, error) from error
    return facts


def refusal(path: Path, error: Exception) -> RunError:
    """Say that a checkpoint cannot be loaded and why, and which one could be."""
    message = f"{path} cannot be loaded: {error}"
    names = [state.name for state in saved_states(path.parent)]
    if path.name in names[1:]:
        before = names[names.index(path.name) - 1]
        message += f". Remove it to go on from {before}, the one before it"
    return RunError(message)


def remove(path: Path) -> None:
    """Remove a folder, or a link and not what it points to, if it is there.

    Under another name first: half of it is never taken for whole.
    """
    gone = path.with_name(f".{path.name.strip('.')}.old")
    shutil.rmtree(gone, ignore_errors=True)
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        os.replace(path, gone)
        shutil.rmtree(gone, ignore_errors=True)
