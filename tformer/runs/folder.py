"""The folder of a run: what lies where, and writing that no kill can spoil."""

import dataclasses
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tformer.checks import require
from tformer.files import beside, read_json, write_json
from tformer.runs.settings import RunSettings


class RunError(Exception):
    """Something that a user can put right; the message says what."""


class RunFolder:
    """The files of a run.

    config.json          what was asked
    metrics.jsonl        a line for each step and each evaluation, as they come
    checkpoints/step-…   from which the run can go on
    model.safetensors    the trained model, and model.json
    result.json          what came of it: scores, times, machine
    loss.svg …           drawings

    Args:
        path: of the folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model.safetensors"
        self.result = self.path / "result.json"

    @classmethod
    def create(cls, path: str | Path, settings: RunSettings) -> "RunFolder":
        """Begin a run in a folder that is empty, or not there yet.

        Raises:
            RunError: the folder holds something already, or cannot be made.
        """
        folder = cls(path)
        if folder.config.exists():
            raise RunError(
                f"{path} has a run in it: go on with --resume, remove it, or name "
                "another folder"
            )
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            # What a kill has left of the writing of config.json is no hindrance.
            beside(folder.config).unlink(missing_ok=True)
            if any(folder.path.iterdir()):
                raise RunError(f"{path} is not empty: name another folder")
            write_json(folder.config, dataclasses.asdict(settings))
        except OSError as error:
            raise RunError(f"{path} cannot be written to: {error.strerror}") from error
        return folder

    def discard(self) -> None:
        """Take a run away that has made no step, with what was made for it."""
        if self.checkpoints.exists():
            return
        if self.metrics.exists() and self.metrics.stat().st_size:
            return
        shutil.rmtree(self.path / "data", ignore_errors=True)
        for file in (self.config, self.metrics, self.path / "lock"):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's file is in it
            self.path.rmdir()

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Find the run that is in a folder.

        Raises:
            RunError: there is none.
        """
        folder = cls(path)
        if not folder.config.is_file():
            raise RunError(f"{path} has no run in it: config.json is missing")
        return folder

    def settings(self) -> RunSettings:
        """Read what was asked.

        Raises:
            RunError: config.json was changed by hand, and not well.
        """
        try:
            return RunSettings.from_json(read_own_json(self.config))
        except (TypeError, KeyError, ValueError) as error:
            raise RunError(f"{self.config}: {error}") from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this folder.

        The system itself lets go of the lock when the process dies, however it dies.

        Raises:
            RunError: another process has it.
        """
        filelock = require("filelock")
        lock = filelock.FileLock(self.path / "lock", timeout=0)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise RunError(f"{self.path}: another process is training here") from None
        try:
            yield
        finally:
            lock.release()


def read_own_json(path: Path, **types: type) -> dict[str, Any]:
    """Read an object that a run has written.

    Args:
        path: of the file.
        **types: what it must hold.

    Raises:
        RunError: the file is missing, truncated, or holds something else.
    """
    try:
        return read_json(path, types=types)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise RunError(str(error)) from error


def remove_folder(path: Path) -> None:
    """Remove a folder under another name first: half of it is never taken for whole."""
    gone = path.with_name(f".{path.name}.old")
    shutil.rmtree(gone, ignore_errors=True)
    os.replace(path, gone)
    shutil.rmtree(gone, ignore_errors=True)
