"""The folder of a run: what lies where, and files that stay whole after a crash."""

import dataclasses
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tformer.checks import require
from tformer.files import (
    SEAL,
    beside,
    check_sealed,
    make_folders,
    read_json,
    write_json,
)
from tformer.runs.settings import RunSettings


class RunError(Exception):
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

    Who writes in the folder holds its lock from the first byte to the last: `create`
    takes it, `lock` takes it for a run that goes on, and `unlock` gives it back. The
    system does so too when the process dies, however it dies.

    Args:
        path: of the folder.
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
        self._lock: Any = None  # while it is held
        self._locked_file: tuple[int, int] | None = None
        self._made: list[Path] | None = None  # the folders, if the run is ours to take

    @classmethod
    def create(cls, path: str | Path, settings: RunSettings) -> "RunFolder":
        """Begin a run in a folder that is empty, or not there yet, and lock it.

        Of several processes that begin at the same moment one gets the folder. The
        others change nothing in it.
        """
        folder = cls(path)
        folder._check_name()
        try:
            folder._check_free()
            made = make_folders(folder.path)
            folder.lock()
            # From here on no other process writes, and what is here is ours.
            folder._check_free()
            folder._made = made
            write_json(folder.config, dataclasses.asdict(settings))
        except BaseException as error:
            folder.discard()
            folder.unlock()
            if isinstance(error, UnicodeEncodeError):
                named = ", ".join(map(repr, settings.files))
                raise RunError(f"files ({named}): a name must be UTF-8") from error
            if isinstance(error, OSError):
                why = error.strerror
                raise RunError(f"{path} cannot be written to: {why}") from error
            raise
        return folder

    def _check_name(self) -> None:
        """Raise if safetensors could not read a file in the folder."""
        try:
            str(self.path).encode()
        except UnicodeEncodeError:
            raise RunError(
                f"{self.path}: the name of a run's folder must be UTF-8; rename it"
            ) from None

    def _check_free(self) -> None:
        is_folder = self.path.is_dir()
        names = {file.name for file in self.path.iterdir()} if is_folder else set()
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
        if self._made is None:
            return
        try:
            self.lock()
            self.check_in_place()
        except (RunError, OSError):  # somebody else is here
            return
        begun = self.metrics.exists() and self.metrics.stat().st_size > 0
        if not self.checkpoints.exists() and not begun:
            shutil.rmtree(self.path / "data", ignore_errors=True)
            for file in (self.config, beside(self.config), self.metrics):
                file.unlink(missing_ok=True)
            with suppress(OSError):  # Windows removes no open file
                self._lock_path.unlink()
            self.unlock()
            with suppress(OSError):  # somebody else's file is in it
                for folder in self._made:
                    folder.rmdir()
        self.unlock()

    def saved_model(self) -> Path | None:
        """Find the trained model, as `load_checkpoint` takes it, if there is one."""
        if (self.model / "model.safetensors").exists():
            return self.model
        return self.old_model if self.old_model.exists() else None

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Find the run that is in a folder."""
        folder = cls(path)
        if not folder.config.is_file():
            raise RunError(f"{path} has no run in it: config.json is missing")
        folder._check_name()
        return folder

    def settings(self) -> RunSettings:
        """Read what was asked."""
        try:
            return RunSettings.from_json(read_own_json(self.config))
        except (TypeError, KeyError, ValueError) as error:
            raise RunError(f"{self.config}: {error}") from error

    @contextmanager
    def locked(self, patience: float = 0.0) -> Iterator[None]:
        """Hold the lock while something is written, unless it is held already."""
        held = self._lock is not None
        self.lock(patience)
        try:
            yield
        finally:
            if not held:
                self.unlock()

    def lock(self, patience: float = 0.0) -> None:
        """Keep other processes from writing here; if we do so already, do nothing.

        Raises:
            RunError: another process writes here for `patience` seconds; or a part of
                the folder is a link, through which we should write somewhere else.
        """
        if self._lock is not None:
            return
        self.check_own("lock", "checkpoints", "data", "model")
        filelock = require("filelock")
        lock = filelock.FileLock(self._lock_path, thread_local=False)
        try:
            lock.acquire(timeout=patience)
        except filelock.Timeout:
            raise RunError(f"{self.path}: another process is training here") from None
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be written to: {error.strerror}"
            ) from error
        self._lock, self._locked_file = lock, _identity(self._lock_path)

    def check_own(self, *names: str) -> None:
        """Raise a RunError if a file or folder of the run is a link, to who knows."""
        for name in names:
            if (self.path / name).is_symlink():
                raise RunError(
                    f"{self.path / name} is a link: a run writes into its own folder "
                    "and nowhere else"
                )

    def unlock(self) -> None:
        """Let other processes in. If we have no lock, do nothing."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def check_in_place(self) -> None:
        """Raise if the folder that we have locked is no longer the one at its path.

        Else a folder that is moved would be made again where it was, and the run would
        lie in two halves. A move after this look is found by the next one.
        """
        if self._lock is not None and _identity(self._lock_path) != self._locked_file:
            raise RunError(
                f"{self.path} was moved while the run wrote there, or its lock was "
                "removed: the run stops. Go on with --resume and the folder as it is "
                "called now"
            )


def in_words(error: Exception) -> str:
    """Say what went wrong: of a file its name first, and no number of the system."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)


def _identity(path: Path) -> tuple[int, int] | None:
    """Tell a file from another that has its name later."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def read_own_json(path: Path, **types: type) -> dict[str, Any]:
    """Read an object that a run has written, and that holds values of these types."""
    try:
        return read_json(path, types=types)
    except (OSError, ValueError) as error:
        raise RunError(in_words(error)) from error


def read_kept_json(path: Path, **types: type) -> dict[str, Any]:
    """Read numbers that a run keeps, without their seal, which older versions lack."""
    values = read_own_json(path, **types)
    if SEAL in values:
        try:
            check_sealed(path, values)
        except ValueError as error:
            raise RunError(str(error)) from error
        del values[SEAL]
    return values
