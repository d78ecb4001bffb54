"""Evaluations that are kept in the folder of a run, beside its result."""

import re
from pathlib import Path
from typing import Any

import torch

from tformer.checks import require
from tformer.files import sealed, write_json
from tformer.runs.folder import RunError, RunFolder, read_kept_json
from tformer.runs.machine import describe_machine

FOLDER = "evaluations"
PATIENCE = 60  # seconds to wait for others that write there; each takes a moment


def check_name(name: str) -> None:
    """Raise unless a name can be that of a file on any system.

    Raises:
        RunError: it cannot.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise RunError(
            f"the name {name!r} must be of letters, digits, '.', '_' and '-', at most "
            "100, and begin with a letter or a digit"
        )


def save_evaluation(
    folder: RunFolder,
    name: str,
    *,
    asked: dict[str, Any],
    result: dict[str, Any],
    mistakes: list[dict[str, str]],
    device: torch.device,
) -> Path:
    """Write what a run's model was asked after the training, and what came of it.

    Args:
        folder: of the run.
        name: of the evaluation; one of this name is replaced.
        asked: files, split and the like.
        result: numbers by name.
        mistakes: some wrong answers: source, target, and what was written.
        device: on which it was computed.

    Returns:
        The file.

    Raises:
        RunError: it cannot be written, or the folder of evaluations is a link.
    """
    check_name(name)
    folder.check_own(FOLDER, f"{FOLDER}/lock")
    path = folder.path / FOLDER / f"{name}.json"
    kept: dict[str, Any] = {"asked": asked, "result": result, "mistakes": mistakes}
    kept["machine"] = describe_machine(device)
    filelock = require("filelock")
    try:
        path.parent.mkdir(exist_ok=True)
        with filelock.FileLock(path.parent / "lock", timeout=PATIENCE):
            write_json(path, sealed(kept))
    except filelock.Timeout as error:
        raise RunError(f"{path} cannot be written: another process does") from error
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from error
    return path


def saved_evaluations(folder: RunFolder) -> dict[str, dict[str, Any]]:
    """Read the evaluations of a run, by name.

    Raises:
        RunError: a file is damaged or changed.
    """
    files = sorted((folder.path / FOLDER).glob("*.json"))
    return {file.stem: read_kept_json(file, asked=dict, result=dict) for file in files}
