"""The numbers of a run as they come: a line of JSON for each."""

import json
import math
import os
import time
from pathlib import Path
from typing import IO, Any

from tformer.files import beside, wait_for_disk


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Read the lines, up to one that a kill has torn.

    Raises:
        FileNotFoundError: there is no such file.
    """
    lines: list[dict[str, Any]] = []
    for line in Path(path).read_bytes().split(b"\n")[:-1]:  # the last has no end
        try:
            values = json.loads(line)
            if not isinstance(values["step"], int):
                break
        except (ValueError, TypeError, KeyError):  # no such object
            break
        lines.append(values)
    return lines


class Metrics:
    """Write lines to a file, after those of steps that still count.

    Args:
        path: of the file.
        start: the step from which the run goes on: lines of later steps, which a kill
            has made void, are taken out, since they will be written again.
        main: False in all processes but one, which then write nothing.
    """

    def __init__(self, path: Path, start: int, *, main: bool = True) -> None:
        kept = []
        if path.exists():
            kept = [line for line in read_metrics(path) if line["step"] <= start]
        self._file: IO[str] | None = None
        if main:
            new = beside(path)
            with new.open("w", encoding="utf-8") as file:
                file.writelines(map(_line, kept))
            wait_for_disk(new)
            os.replace(new, path)
            self._file = path.open("a", encoding="utf-8", buffering=1)
        # The clocks go on where the last step that counts has left them.
        timed = [line for line in kept if "seconds" in line] or [{}]
        self._before = {n: timed[-1].get(n, 0.0) for n in ("seconds", "cpu_seconds")}
        self._began = _clocks()

    def seconds(self) -> dict[str, float]:
        """Say how long the run has taken, on the wall's clock and the processor's."""
        now = _clocks()
        return {
            name: round(before + now[name] - self._began[name], 3)
            for name, before in self._before.items()
        }

    def write(self, values: dict[str, Any]) -> None:
        """Write a line, and let it be seen at once."""
        if self._file is not None:
            self._file.write(_line(values))

    def sync(self) -> None:
        """Wait until all lines are on the disk."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            self._file.close()


def _clocks() -> dict[str, float]:
    return {"seconds": time.perf_counter(), "cpu_seconds": time.process_time()}


def _line(values: dict[str, Any]) -> str:
    """Make a line; JSON has no word for what is not finite."""
    for name, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            values = {**values, name: None}
    return json.dumps(values) + "\n"
