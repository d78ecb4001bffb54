"""The numbers of a run as they come: a line of JSON for each.

Each line ends with a CRC-32 of what is before it, by which damage is seen. Lines of
older versions have none.
"""

import json
import os
import time
import warnings
import zlib
from pathlib import Path
from typing import TextIO

from tformer.files import (
    Json,
    beside,
    check_has_end,
    finite_or_null,
    open_new,
    wait_for_disk,
)
from tformer.runs.folder import RunError, is_still

CRC = b', "crc32": '


def read_metrics(path: str | Path) -> list[Json]:
    """Read the lines, without a last one that a kill has torn, or damaged ones.

    Of damaged ones a warning says how many there are.
    """
    return [values for _, values in _read_lines(Path(path))]


def _read_lines(path: Path) -> list[tuple[bytes, Json]]:
    """Read the lines, each as it was written and what it says."""
    check_has_end(path)
    whole = path.read_bytes().split(b"\n")[:-1]  # the last has no end
    lines = [(line + b"\n", v) for line in whole if (v := _read_line(line)) is not None]
    if damaged := len(whole) - len(lines):
        warnings.warn(f"{path}: damaged lines ({damaged}) are left out", stacklevel=3)
    return lines


def _read_line(line: bytes) -> Json | None:
    """Read what a line says; None if it is damaged."""
    try:
        said, mark, crc = line.rpartition(CRC)
        values: Json = json.loads(said + b"}" if mark else line)
        if type(values["step"]) is not int:
            return None
    # No such object, or 10,000 brackets, each in the other.
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return values if not mark or crc == b"%d}" % zlib.crc32(said) else None


class Metrics:
    """Write lines to a file, after those of steps that still count.

    Args:
        path: of the file.
        start: the step from which the run goes on: lines of later steps are taken out,
            since they will be written again.
        main: False in all processes but one, which then write nothing.
    """

    def __init__(self, path: Path, start: int, *, main: bool = True) -> None:
        self._path = path
        found = _read_lines(path) if path.exists() else []
        kept = [(line, values) for line, values in found if values["step"] <= start]
        # The clocks go on where the last step that counts has left them.
        self._began = _clocks()
        for name in self._began:
            times = [v[name] for _, v in kept if _is_time(v.get(name))]
            self._began[name] -= times[-1] if times else 0.0
        self._file: TextIO | None = None
        if main:
            made = {values["step"] for _, values in kept if "loss" in values}
            if lost := start - len({step for step in made if step >= 1}):
                warnings.warn(
                    f"{path} lacks the lines of {lost} of {start} steps: they were "
                    "removed or damaged, and are missing in the drawings too",
                    stacklevel=2,
                )
            with open_new(beside(path)) as file:
                file.writelines(line for line, _ in kept)
            wait_for_disk(beside(path))
            os.replace(beside(path), path)
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def seconds(self) -> dict[str, float]:
        """Say how long the run has taken, on the wall's clock and the processor's."""
        return {n: round(now - self._began[n], 3) for n, now in _clocks().items()}

    def write(self, values: Json) -> None:
        """Write a line, and let it be seen at once.

        Raises:
            OSError: it cannot be written.
            RunError: the file is no longer at its path: what is written into one that
                was removed, or that an editor has replaced, would be lost.
        """
        if self._file is not None:
            self._check_in_place(self._file)
            said = json.dumps(finite_or_null(values)).removesuffix("}")
            self._file.write(f"{said}{CRC.decode()}{zlib.crc32(said.encode())}}}\n")

    def _check_in_place(self, file: TextIO) -> None:
        if not is_still(self._path, os.fstat(file.fileno())):
            raise RunError(
                f"{self._path} was removed or replaced while the run wrote there: the "
                "run stops. Go on with --resume"
            )

    def sync(self) -> None:
        """Wait until all lines are on the disk; errors as of `write`."""
        if self._file is not None:
            self._check_in_place(self._file)
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            self._file.close()


def _clocks() -> dict[str, float]:
    return {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}


def _is_time(value: object) -> bool:
    """Tell a time from what somebody has written in its place."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e12
