"""The folder of a run: what lies where, and who may write there."""

import dataclasses
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tformer.checks import require
from tformer.files import (
    SEAL,
    Json,
    beside,
    check_has_end,
    check_sealed,
    make_folders,
    read_json,
    write_json,
)
from tformer.runs.settings import RunSettings

if TYPE_CHECKING:
    from filelock import BaseFileLock


class RunError(ValueError):
    """Something that a user can put right; the message says what."""


class RunFolder:
    """The files of a run.

    config.json          what was asked
    metrics.jsonl        a line for each step and each evaluation, as they come
    checkpoints/step-…   from which the run can go on
    model/               the trained model: config.json, model.safetensors
    result.json          what came of it: scores, times, machine
    loss.svg …           drawings
    lock                 held by the process that writes here

    Who writes in the folder holds its lock from the first byte to the last. The system
    gives it back when the process dies, however it dies.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.metrics = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.model = self.path / "model"
        self.old_model = self.path / "model.safetensors"  # of version 0.1
        self.result = self.path / "result.json"
        self._lock_path = self.path / "lock"
        self._lock: BaseFileLock | None = None  # while it is held
        self._inode = 0  # of the file that is locked
        self._made: list[Path] | None = None  # the folders, if the run is ours to take

    @classmethod
    def create(cls, path: str | Path, settings: RunSettings) -> "RunFolder":
        """Begin a run in a folder that is empty, or not there yet, and lock it.

        Of several processes that begin at once one gets it; the others change nothing.
        """
        folder = cls(path)
        try:
            folder._check_free()
            made = make_folders(folder.path)
            folder.lock()
            # From here on no other process writes, and what is here is ours.
            folder._check_free()
            folder._made = made
            write_json(folder.config, dataclasses.asdict(settings))
        except BaseException:
            folder.discard()
            raise
        return folder

    def _check_free(self) -> None:
        files = self.path.iterdir() if self.path.is_dir() else ()
        names = {file.name for file in files}
        if self.config.name in names:
            raise RunError(
                f"{self.path} has a run in it: go on with --resume, remove it, or name "
                "another folder"
            )
        # What a kill has left of a beginning is no hindrance.
        if names - {self._lock_path.name, beside(self.config).name}:
            raise RunError(f"{self.path} is not empty: name another folder")

    def discard(self) -> None:
        """Take away a run that this process began, alone, and that has made no step."""
        with suppress(RunError, OSError):  # somebody else is here, or a file of theirs
            begun = self.metrics.exists() or self.checkpoints.exists()
            if self._made is not None and not begun:
                self.lock()
                self.check()
                shutil.rmtree(self.path / "data", ignore_errors=True)
                for file in (self.config, beside(self.config), self._lock_path):
                    file.unlink(missing_ok=True)
                for folder in self._made:
                    folder.rmdir()
        self.unlock()

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Find the run that is in a folder."""
        folder = cls(path)
        if not folder.config.exists():
            raise RunError(f"{path} has no run in it: config.json is missing")
        check_has_end(folder.config)
        return folder

    def settings(self) -> RunSettings:
        """Read what was asked."""
        values = read_json(self.config)
        try:
            return RunSettings.from_json(values)
        except ValueError as error:
            raise RunError(f"{self.config}: {error}") from error

    def saved_model(self) -> Path | None:
        """Find the trained model, as `load_checkpoint` takes it, if there is one."""
        if (self.model / "model.safetensors").exists():
            return self.model
        return self.old_model if self.old_model.exists() else None

    def lock(self, patience: float = 0.0) -> None:
        """Keep other processes from writing here; if we do so already, do nothing.

        A RunError says that another process writes here, for `patience` seconds, or
        that a part of the folder is a link: we should write somewhere else.
        """
        if self._lock is not None:
            return
        self.check("lock", "checkpoints", "data", "model")
        filelock = require("filelock")
        lock: BaseFileLock = filelock.FileLock(self._lock_path, thread_local=False)
        try:
            lock.acquire(timeout=patience)
        except filelock.Timeout:
            raise RunError(f"{self.path}: another process is training here") from None
        self._lock, self._inode = lock, self._lock_path.lstat().st_ino

    def unlock(self) -> None:
        """Let other processes in. If we have no lock, do nothing."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def check(self, *names: str) -> None:
        """Raise unless what is locked is still at its path, and no file here is a link.

        Else a folder that is moved would be made again where it was, and the run would
        lie in two halves. A move after this look is found by the next one.
        """
        lock = self._lock_path
        if self._lock is not None and (
            not lock.exists() or lock.lstat().st_ino != self._inode
        ):
            raise RunError(
                f"{self.path} was moved while the run wrote there, or its lock was "
                "removed: the run stops. Go on with --resume and the folder as it is "
                "called now"
            )
        for name in names:
            if (self.path / name).is_symlink():
                raise RunError(
                    f"{self.path / name} is a link: a run writes into its own folder "
                    "and nowhere else"
                )


def read_kept_json(path: Path, **types: type) -> Json:
    """Read numbers that a run keeps, without their seal, which older versions lack."""
    values = read_json(path, types=types)
    if SEAL in values:
        check_sealed(path, values)
        del values[SEAL]
    return values
