"""Starts the process in which readers' files run, and reads what comes back."""

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from types import TracebackType
from typing import cast

from tformer.check.calling import Answer, Array, Call, Task
from tformer.check.outcomes import Outcome
from tformer.check.wire import ANSWERS, pack, unpack

CHILD = Path(__file__).with_name("child.py")
SECONDS = 20  # that one file may take
SAID = 64 << 20  # bytes, the most that it may send
PRINTED = 4000  # bytes that are kept of what it prints
# On a Mac the library below NumPy may crash in a process that was forked.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
STARTING = 120.0  # to import torch on a slow machine
KEPT = """PATH LD_LIBRARY_PATH DYLD_LIBRARY_PATH LANG SYSTEMROOT CONDA_PREFIX TMPDIR
TEMP TMP"""


@dataclass(frozen=True)
class Reply:
    """What came back of a file."""

    failed: str = ""  # why nothing was called
    note: str = ""  # which function was taken, if not the one asked for
    printed: str = ""  # the beginning of what the file printed
    answers: dict[Call, Answer] | None = None  # None if nothing was called
    ended: str = ""  # why not all calls were answered


class Runner:
    """Runs readers' files, each in a process of its own, with a limit of time.

    Use it in a `with`: at its end no process is left.

    Args:
        seconds: that one file may take.
        forks: whether one process starts the others, which is faster by far.
    """

    def __init__(self, seconds: int = SECONDS, *, forks: bool = FORKS) -> None:
        self.seconds, self.forks = seconds, forks
        self._helpers: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> "Runner":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for helper in self._helpers.values():
            _end(helper)
        self._helpers.clear()

    def run(self, source: str, name: str, arguments: list[str], task: Task) -> Reply:
        """Load a file, make the calls of a task, and return what they gave.

        Args:
            source: what stands in the file.
            name: of the function.
            arguments: their names.
            task: what is asked.
        """
        job = pack(
            {
                "file": task.file,
                "source": source,
                "name": name,
                "arguments": arguments,
                "task": task,
                "seconds": self.seconds,
            }
        )
        libraries = "torch" if task.framework == "torch" or "torch" in source else ""
        try:
            said, sent = (self._ask if self.forks else self._once)(libraries, job)
        except (TimeoutError, EOFError, OSError, ValueError):
            if helper := self._helpers.pop(libraries, None):
                _end(helper)
            return Reply(failed="the process in which it ran was lost")
        return _reply(task, said, sent, self.seconds)

    def _ask(self, libraries: str, job: bytes) -> tuple[dict[str, str], bytes]:
        fresh = libraries not in self._helpers
        helper = self._helpers.get(libraries) or self._start(libraries)
        self._helpers[libraries] = helper
        if helper.stdin is None or helper.stdout is None:
            raise OSError("it has no pipes")
        helper.stdin.write(len(job).to_bytes(8, "little") + job)
        helper.stdin.flush()
        last = time.monotonic() + self.seconds + 30 + STARTING * fresh
        handle = helper.stdout.fileno()
        said = cast(dict[str, str], unpack(_frame(handle, last), {}))
        return said, _frame(handle, last)

    @staticmethod
    def _start(libraries: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            _command(libraries),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C is ours: it ends the helper, see `_end`
        )

    def _once(self, libraries: str, job: bytes) -> tuple[dict[str, str], bytes]:
        """Start a process for one file, which says what it has to say into files."""
        room = TemporaryDirectory(prefix="tformer-check-", ignore_cleanup_errors=True)
        with room as folder, TemporaryFile() as sent, TemporaryFile() as printed:
            end = "time"
            with suppress(subprocess.TimeoutExpired):
                ended = subprocess.run(
                    [*_command(libraries), os.path.realpath(folder)],
                    input=len(job).to_bytes(8, "little") + job,
                    stdout=sent,
                    stderr=printed,
                    env=_environment(),
                    timeout=self.seconds + STARTING * bool(libraries),
                )
                end = f"code {ended.returncode}" if ended.returncode else ""
            sent.seek(0)
            printed.seek(0)
            text = printed.read(PRINTED).decode("utf-8", "replace")
            return {"printed": text, "end": end}, sent.read(SAID)


def _command(libraries: str) -> list[str]:
    path = [os.path.abspath(place) for place in sys.path if place]
    return [sys.executable, "-I", str(CHILD), json.dumps(path), libraries]


def _environment() -> dict[str, str]:
    environment = {
        name: os.environ[name] for name in KEPT.split() if name in os.environ
    }
    for name in ("OMP", "MKL", "OPENBLAS"):  # a process that forks has no threads
        environment[f"{name}_NUM_THREADS"] = "1"
    return environment


def _end(helper: "subprocess.Popen[bytes]") -> None:
    if helper.stdin is not None:
        with suppress(OSError):
            helper.stdin.close()
    helper.terminate()
    try:
        helper.wait(5)
    except subprocess.TimeoutExpired:
        helper.kill()
        helper.wait()
    if helper.stdout is not None:
        helper.stdout.close()


def _frame(handle: int, last: float) -> bytes:
    size = int.from_bytes(_bytes(handle, 8, last), "little")
    return _bytes(handle, size, last)


def _bytes(handle: int, size: int, last: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        wait = last - time.monotonic()
        if wait <= 0 or not select.select([handle], [], [], wait)[0]:
            raise TimeoutError
        more = os.read(handle, min(1 << 20, size - len(data)))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def _reply(task: Task, said: dict[str, str], sent: bytes, seconds: int) -> Reply:
    """Read what a file's process sent, which its code may have forged."""
    values, begin = [], 0
    try:
        while begin < len(sent):
            size = int.from_bytes(sent[begin : begin + 8], "little")
            if begin + 8 + size > len(sent):
                break
            values.append(unpack(sent[begin + 8 : begin + 8 + size], ANSWERS))
            begin += 8 + size
        first, *rest = values or [{}]
        answers = dict(zip(task.calls, map(_checked, rest), strict=False))
        loaded = _texts(first)
    except ValueError as error:
        return Reply(failed=f"what came back cannot be read: {error}")
    why = {
        "": "the process ended itself",
        "time": f"it did not end within {seconds:g} s",
        "much": "it gave too many numbers back",
    }
    ended = why.get(said["end"], f"the process ended with {said['end']}")
    printed = said["printed"]
    if not values:
        return Reply(failed=f"to load the file: {ended}", printed=printed)
    if failed := loaded.get("failed"):
        return Reply(failed=failed, printed=printed)
    whole = len(answers) == sum(1 for _ in task.calls)
    note = loaded.get("note", "")
    return Reply("", note, printed, answers, "" if whole else ended)


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("the first message is none of ours")
    return {str(key): str(x) for key, x in value.items()}


def _checked(answer: object) -> Answer:
    """Return an answer of which each part is what it must be.

    Raises:
        ValueError: a part is not.
    """
    if isinstance(answer, Answer) and isinstance(answer.outcome, Outcome):
        outcome = answer.outcome
        arrays = (*outcome.arrays, *answer.gradients.values())
        words = (*answer.changed, outcome.dtype or "", outcome.error or "")
        numbers = all(isinstance(x, Array) for x in arrays)
        if numbers and all(isinstance(x, str) for x in words):
            return answer
    raise ValueError("an answer is none of ours")
