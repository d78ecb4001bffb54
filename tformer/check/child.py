"""The process in which a reader's file runs; it holds no oracle, and reaches none.

`tformer.check.running` starts it, as `python -I child.py PATH LIBRARIES`: it imports
torch once, if that is asked for, and forks for each file. Where a process cannot fork
it is started for each, as `python -I child.py PATH LIBRARIES FOLDER`. What it is told
and what it says stand in `wire.py`.
"""

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, cast

HERE = Path(__file__).resolve().parent


def _alone() -> None:
    """Let `tformer.check.…` be imported without the package, which has the oracles."""
    for name, place in (("tformer", HERE.parent), ("tformer.check", HERE)):
        module = ModuleType(name)
        module.__path__ = [str(place)]
        sys.modules[name] = module


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path[:] = json.loads(sys.argv[1])
    _alone()

from tformer.check.calling import Task  # noqa: E402
from tformer.check.guard import guard, limit  # noqa: E402
from tformer.check.landlock import hold_to  # noqa: E402
from tformer.check.loading import load  # noqa: E402
from tformer.check.wire import KINDS, pack, unpack  # noqa: E402

SAID = 64 << 20  # bytes, the most that one file may send
PRINTED = 4000  # bytes that are kept of what it prints
Send = Callable[[object], None]


def work(job: dict[str, object], send: Send, folder: str) -> None:
    """Load a file, and make the calls of a task; send what each of them gave."""
    task = cast(Task, job["task"])
    limit(cast(int, job["seconds"]) + 1)
    hold_to(folder, [os.path.dirname(str(job["file"]))], HERE.parent)
    guard(folder, HERE.parent)
    file, source, name = (str(job[key]) for key in ("file", "source", "name"))
    function, loaded = load(file, source, name, cast(list[str], job["arguments"]))
    send(loaded)
    if function is not None:
        for call in task.calls:
            send(task.answer(function, call, caught=BaseException))


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data


def _child(job: dict[str, object], folder: str, reply: int, printed: int) -> None:
    """Work in a process for one file; never returns."""
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, place in enumerate((nothing, printed, printed)):
            os.dup2(place, number)
        os.dup2(reply, 3)
        os.closerange(4, 1024)
        os.chdir(folder)
        for name in ("HOME", "TMPDIR", "TEMP", "TMP", "USERPROFILE"):
            os.environ[name] = folder
        tempfile.tempdir = folder

        def send(value: object) -> None:
            data = _frame(pack(value))
            while data:
                data = data[os.write(3, data) :]

        work(job, send, folder)
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(0)


def forked(job: dict[str, object]) -> tuple[dict[str, object], bytes]:
    """Work in a process of its own; return what it sent, what it printed, its end."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="tformer-check-"))
    (reply, sends), (prints, printed) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        _child(job, folder, sends, printed)
    end, code = "time", 0
    try:
        os.close(sends)
        os.close(printed)
        last = time.monotonic() + cast(int, job["seconds"])
        end, kept = _heard({reply: SAID, prints: PRINTED}, reply, last)
    finally:  # also where this process is told to end
        code = _ended(child, end)
        os.close(reply)
        os.close(prints)
        shutil.rmtree(folder, ignore_errors=True)
    text = bytes(kept[prints]).decode("utf-8", "replace")
    end = end or (f"code {code}" if code else "")
    return {"printed": text, "end": end}, bytes(kept[reply])


def _heard(
    most: dict[int, int], reply: int, last: float
) -> tuple[str, dict[int, bytearray]]:
    """Read so many bytes of pipes until one of them ends, too much comes, or too late.

    Returns:
        Why it stopped, nothing if the pipe ended; and what was read.
    """
    kept, open_ends = {number: bytearray() for number in most}, {*most}
    while reply in open_ends:
        ready, _, _ = select.select(
            [*open_ends], [], [], max(0, last - time.monotonic())
        )
        if not ready:
            return "time", kept
        for number in ready:
            data = os.read(number, 1 << 16)
            if not data:
                open_ends.remove(number)
            elif number == reply and len(kept[reply]) >= most[reply]:
                return "much", kept
            kept[number] += data[: max(0, most[number] - len(kept[number]))]
    return "", kept


def _ended(child: int, end: str) -> int:
    """End a process and whatever it has started; return its code, of a signal -N."""
    wait = time.monotonic() + (0 if end else 1)
    found, status = os.waitpid(child, os.WNOHANG)
    while not found and time.monotonic() < wait:
        time.sleep(0.002)
        found, status = os.waitpid(child, os.WNOHANG)
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    if not found:
        _, status = os.waitpid(child, 0)
    while orphans := _children():  # what left the session comes to us, see `adopt`
        for orphan in orphans:
            with suppress(OSError):
                os.kill(orphan, signal.SIGKILL)
            with suppress(OSError):
                os.waitpid(orphan, 0)
    return os.waitstatus_to_exitcode(status)


def _children() -> list[int]:
    """List the processes whose parent is this one, on Linux."""
    with suppress(OSError):
        me = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        return [int(x) for x in me.split()]
    return []


def adopt() -> None:
    """Become the parent of processes whose own parent ends, on Linux."""
    with suppress(ImportError, OSError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _read(stream: BinaryIO) -> dict[str, object] | None:
    size = stream.read(8)
    data = stream.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    return cast(dict[str, object], unpack(data, KINDS)) if data else None


def main() -> None:
    """Do one job after the other, until there are no more."""
    with suppress(ImportError):
        import numpy  # noqa: F401
    if sys.argv[2] == "torch":
        import torch

        torch.set_num_threads(1)
    if sys.argv[3:] and (job := _read(sys.stdin.buffer)):  # for one file alone
        _child(job, sys.argv[3], os.dup(1), 2)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    adopt()
    says = sys.stdout.buffer
    while job := _read(sys.stdin.buffer):
        told, sent = forked(job)
        says.write(_frame(pack(told)) + _frame(sent))
        says.flush()


if __name__ == "__main__":
    main()
