"""Checkpoints of a training: from any of them it resumes with the same numbers."""

import os
import re
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tformer.checks import require
from tformer.files import (
    check_sealed,
    read_json,
    sealed,
    sha256_of,
    wait_for_disk,
    write_json,
)
from tformer.runs.folder import RunError
from tformer.training.distributed import unwrap
from tformer.training.processes import from_all, not_finite, num_processes, process_rank
from tformer.training.shards import (
    full_state,
    load_full_state,
    load_shards,
    save_shards,
)

FORMAT = "tformer training state, version 2"
OLD_FORMAT = "tformer training state, version 1"  # hashes no shards, and not itself
STEP_FOLDER = re.compile(r"step-[0-9]+")
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
        FloatingPointError: a weight is not finite: nobody could go on from there, and
            a whole checkpoint would be removed to make room.
        RunError: it cannot be written, because the disk is full. Older ones are whole.
    """
    if name := not_finite(unwrap(model).named_parameters()):
        raise FloatingPointError(
            f"after step {step}: the parameter {name} is not finite, and no checkpoint "
            "is made of it. A lower learning rate or a longer warm-up may help"
        )
    path = folder / f"step-{step:08d}"
    new = folder / f".{path.name}.new"
    try:
        if process_rank() == 0:
            remove(new)
            # The run's own folder is not made: if it is gone, it was moved.
            folder.mkdir(exist_ok=True)
            wait_for_disk(folder.parent)
            new.mkdir()
        if sharded:
            save_shards(new / SHARDS, model, optimizer)
            names = sorted(f"{SHARDS}/{file.name}" for file in _files(new / SHARDS))
            digests = _digests(new, names)
        else:
            tensors = full_state(model, optimizer)
        if process_rank() > 0:
            return
        if not sharded:
            require("safetensors.torch").save_file(tensors, new / TENSORS)
            (new / TENSORS).chmod(0o644)  # safetensors lets only the owner read
            digests = {TENSORS: sha256_of(new / TENSORS)}
        for name in digests:
            wait_for_disk(new / name)
        own = {"format": FORMAT, "step": step, "sha256": digests}
        write_json(new / FACTS, sealed({**own, **facts}))
        if path.exists():  # made before the run went back to an older one
            remove_folder(path)
        os.replace(new, path)
        wait_for_disk(folder)
    except (OSError, require("safetensors").SafetensorError) as error:
        remove(new)
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
    found = [path for path in folder.iterdir() if STEP_FOLDER.fullmatch(path.name)]
    return sorted(found, key=lambda path: (int(path.name[5:]), path.name))


def clean_up(folder: Path) -> None:
    """Remove what a kill has left half-written, or half-removed."""
    for pattern in (".*.new", ".*.old"):
        for path in folder.glob(pattern):
            remove(path)


def load_state(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, Any]:
    """Load a checkpoint into a model and its optimizer, on any number of processes.

    Args:
        path: the folder of the checkpoint.
        model: as `distribute` returned it.
        optimizer: of its parameters.

    Returns:
        What `read_facts` gives.

    Raises:
        RunError: a file is missing, truncated or changed, or of another model. The
            message names it, and an older checkpoint if there is one.
    """
    facts = read_facts(path)
    try:
        _check_digests(path, facts["sha256"])
        if (path / SHARDS).exists():
            load_shards(path / SHARDS, model, optimizer)
            return facts
        tensors = {}
        if process_rank() == 0:
            tensors = require("safetensors.torch").load_file(path / TENSORS)
        load_full_state(model, tensors, optimizer)
        return facts
    except (RunError, OSError, ValueError, KeyError) as error:
        raise refusal(path, error) from error


def read_facts(path: Path) -> dict[str, Any]:
    """Read of a checkpoint what `save_state` was given as facts, and "step".

    Raises:
        RunError: they are missing, changed, or of another step, as in `load_state`.
    """
    try:
        facts = read_json(
            path / FACTS, format=(FORMAT, OLD_FORMAT), types={"step": int}
        )
        if facts["format"] == FORMAT:
            check_sealed(path / FACTS, facts)
        if facts["step"] != int(path.name[5:]):
            raise RunError(f"{path / FACTS} is of step {facts['step']}")
    except (RunError, OSError, ValueError) as error:
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


def _check_digests(path: Path, digests: Any) -> None:
    """Hold the files of a checkpoint to their SHA-256; all processes must call it.

    Raises:
        RunError: a file is missing, truncated or changed, or there is one more.
    """
    if digests is None:  # of an old format: there is nothing to hold them to
        if process_rank() == 0:
            warnings.warn(
                f"{path} is of an older version, which kept no hashes of its shards: "
                "whether they were changed is not known",
                stacklevel=2,
            )
        return
    if isinstance(digests, str):  # of the old format
        digests = {TENSORS: digests}
    if not isinstance(digests, dict):
        raise RunError(f"{path / FACTS}: sha256 ({digests!r}) has a wrong type")
    there = {f"{SHARDS}/{file.name}" for file in _files(path / SHARDS)}
    there |= {TENSORS} if (path / TENSORS).exists() else set()
    for name in sorted(there ^ digests.keys()):
        wrong = "is missing" if name in digests else "is not of this checkpoint"
        raise RunError(f"{path / name} {wrong}")
    found = _digests(path, sorted(digests))
    for name, digest in digests.items():
        if found[name] != digest:
            raise RunError(f"{path / name} is truncated or changed")


def _digests(folder: Path, names: list[str]) -> dict[str, str]:
    """Hash files, each process some of them; all must call it, and each gets all."""
    names = from_all(names)[0]  # on several machines not all need see them at once
    mine = names[process_rank() :: num_processes()]
    found = from_all({name: sha256_of(folder / name) for name in mine})
    return {name: digest for part in found for name, digest in part.items()}


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def remove_folder(path: Path) -> None:
    """Remove a folder under another name first: half of it is never taken for whole."""
    gone = path.with_name(f".{path.name}.old")
    remove(gone)
    os.replace(path, gone)
    remove(gone)


def remove(path: Path) -> None:
    """Remove a folder, or a file, or a link and not what it points to, if we can."""
    if path.is_symlink() or not path.is_dir():
        with suppress(OSError):
            path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)
