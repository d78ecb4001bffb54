"""Checkpoints of a training: from any of them it resumes with the same numbers."""

import os
import re
import shutil
import warnings
from contextlib import suppress
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
from tformer.training.processes import from_all, num_processes, process_rank
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
    facts: Json,
    keep: int,
    sharded: bool = False,
) -> None:
    """Write a checkpoint into a folder beside the older ones, then remove the oldest.

    All is written under another name, waited for until it is on the disk, and renamed:
    at any instant every folder called step-… is whole.

    Args:
        folder: of the checkpoints; with several processes, one that all of them see.
        step: after which it is made.
        model: as `distribute` returned it.
        optimizer: of its parameters.
        facts: what else is kept.
        keep: how many checkpoints to keep, this one included.
        sharded: each process writes its own part, where no process could hold all.

    Raises:
        RunError: it cannot be written, because the disk is full. Older ones are whole.
    """
    path = folder / f"step-{step:08d}"
    new = folder / f".{path.name}.new"
    main = process_rank() == 0
    try:
        if main:
            remove(new)
            # The run's own folder is not made: if it is gone, it was moved.
            folder.mkdir(exist_ok=True)
            wait_for_disk(folder.parent)
            new.mkdir()
        if sharded:
            save_shards(new / SHARDS, model, optimizer)
            digests = _digests(new, _files(new))
        else:
            tensors = full_state(model, optimizer)
        if not main:
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


def load_newest(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[Path, Json] | None:
    """Remove what a kill has left half-written; load and name the newest checkpoint."""
    if process_rank() == 0:
        for path in [*folder.glob(".*.new"), *folder.glob(".*.old")]:
            remove(path)
    saved = saved_states(folder)
    return (saved[-1], load_state(saved[-1], model, optimizer)) if saved else None


def load_state(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> Json:
    """Load a checkpoint, on any number of processes, and return its `read_facts`.

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
        load = require("safetensors.torch").load_file
        tensors = load(path / TENSORS) if process_rank() == 0 else {}
        load_full_state(model, tensors, optimizer)
        return facts
    except (OSError, ValueError, KeyError) as error:
        raise refusal(path, error) from error


def read_facts(path: Path) -> Json:
    """Read what `save_state` was given as facts, and "step"; errors as `load_state`."""
    try:
        known = (FORMAT, OLD_FORMAT)
        facts = read_json(path / FACTS, format=known, types={"step": int})
        if facts["format"] == FORMAT:
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


def _check_digests(path: Path, digests: object) -> None:
    """Raise unless the files of a checkpoint have their SHA-256; all must call it."""
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
        raise ValueError(f"{path / FACTS}: sha256 ({digests!r}) has a wrong type")
    for name in sorted(digests.keys() ^ _files(path)):
        wrong = "is missing" if name in digests else "is not of this checkpoint"
        raise ValueError(f"{path / name} {wrong}")
    for name, digest in _digests(path, set(digests)).items():
        if digests[name] != digest:
            raise ValueError(f"{path / name} is truncated or changed")


def _digests(folder: Path, names: set[str]) -> dict[str, str]:
    """Hash files, each process some of them; all must call it, and each gets all."""
    every: list[str] = from_all(sorted(names))[0]  # not all need see them at once
    mine = every[process_rank() :: num_processes()]
    found = from_all({name: sha256_of(folder / name) for name in mine})
    return {name: digest for part in found for name, digest in part.items()}


def _files(state: Path) -> set[str]:
    """Name the files of a checkpoint that have hashes."""
    found = {f"{SHARDS}/{file.name}" for file in (state / SHARDS).glob("*")}
    return found | ({TENSORS} if (state / TENSORS).exists() else set())


def remove_folder(path: Path) -> None:
    """Remove a folder under another name first: half of it is never taken for whole."""
    gone = path.with_name(f".{path.name}.old")
    remove(gone)
    os.replace(path, gone)
    remove(gone)


def remove(path: Path) -> None:
    """Remove a folder, or a file, or a link and not what it points to, if we can."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
