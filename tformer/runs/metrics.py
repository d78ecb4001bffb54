"""The numbers of a run as they come: a line of JSON for each.

Each line ends with a CRC-32 of what is before it, by which damage is seen. Lines of
older versions have none.
"""

import json
import os
import time
import warnings
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tformer.files import (
    beside,
    check_has_end,
    finite_or_null,
    open_new,
    wait_for_disk,
)

CLOCKS = ("seconds", "cpu_seconds")


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Read the lines, without a last one that a kill has torn, or damaged ones.

    Of damaged ones a warning says how many there are.
    """
    return [values for _, values in _read_lines(Path(path))]


def _read_lines(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Read the lines, each as it was written and what it says."""
    check_has_end(path)
    whole = path.read_bytes().split(b"\n")[:-1]  # the last has no end
    lines = [(line + b"\n", v) for line in whole if (v := _read_line(line)) is not None]
    if damaged := len(whole) - len(lines):
        warnings.warn(f"{path}: damaged lines ({damaged}) are left out", stacklevel=3)
    return lines


def _read_line(line: bytes) -> dict[str, Any] | None:
    """Read what a line says; None if it is damaged."""
    try:
        said, mark, crc = line.rpartition(CRC)
        values: dict[str, Any] = json.loads(said + b"}" if mark else line)
        if type(values["step"]) is not int:
            return None
    # No such object, or 10,000 brackets, each in the other.
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return values if not mark or crc == b"%d}" % zlib.crc32(said) else None


CRC = b', "crc32": '


class Metrics:
    """Write lines to a file, after those of steps that still count.

    Args:
        path: of the file.
        start: the step from which the run goes on: lines of later steps, which a kill
            has made void, are taken out, since they will be written again.
        main: False in all processes but one, which then write nothing.
    """

    def __init__(self, path: Path, start: int, *, main: bool = True) -> None:
        self._path = path
        found = _read_lines(path) if path.exists() else []
        kept = [values for _, values in found if values["step"] <= start]
        self._file: IO[str] | None = None
        if main:
            made = {values["step"] for values in kept if "loss" in values}
            if lost := start - len({step for step in made if step >= 1}):
                warnings.warn(
                    f"{path} lacks the lines of {lost} of {start} steps: they were "
                    "removed or damaged, and are missing in the drawings too",
                    stacklevel=2,
                )
            new = beside(path)
            with open_new(new) as file:
                file.writelines(line for line, v in found if v["step"] <= start)
            wait_for_disk(new)
            os.replace(new, path)
            flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
            self._file = os.fdopen(
                os.open(path, flags), "a", encoding="utf-8", buffering=1
            )
        # The clocks go on where the last step that counts has left them.
        self._before = {
            name: ([0.0] + [v[name] for v in kept if _is_time(v.get(name))])[-1]
            for name in CLOCKS
        }
        self._began = _clocks()

    def seconds(self) -> dict[str, float]:
        """Say how long the run has taken, on the wall's clock and the processor's."""
        now = _clocks()
        return {
            name: round(before + now[name] - self._began[name], 3)
            for name, before in self._before.items()
        }

    def write(self, values: dict[str, Any]) -> None:
        """Write a line, and let it be seen at once.

        Raises:
            OSError: it cannot be written, or the file is no longer at its path: what
                is written into one that was removed, or that an editor has replaced,
                would be lost.
        """
        if self._file is not None:
            self._check_in_place(self._file)
            said = json.dumps(finite_or_null(values)).removesuffix("}")
            crc = zlib.crc32(said.encode())
            self._file.write(f"{said}{CRC.decode()}{crc}}}\n")

    def _check_in_place(self, file: IO[str]) -> None:
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), self._path.lstat()):
                return
        raise OSError(
            f"{self._path} was removed or replaced while the run wrote there: the run "
            "stops. Go on with --resume"
        )

    def sync(self) -> None:
        """Wait until all lines are on the disk; errors as of `write`."""
        if self._file is not None:
            self._check_in_place(self._file)
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            self._file.close()


def _clocks() -> dict[str, float]:
    return dict(zip(CLOCKS, (time.perf_counter(), time.process_time()), strict=True))


def _is_time(value: object) -> bool:
    """Tell a time from what somebody has written in its place."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < 1e12  # type: ignore[operator]  # seconds
