"""Ctrl-C, and what a machine sends that wants its place back: stop after this step."""

# --8<-- [start:imports]
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# --8<-- [end:imports]


# --8<-- [start:stop_signals]
@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Note SIGINT (Ctrl-C) and SIGTERM instead of dying of them; a second one kills.

    Yields:
        Says whether one has come.
    """
    asked = False

    def note(_: int, __: FrameType | None) -> None:
        nonlocal asked
        asked = True
        for kind, handler in before.items():  # the next one does what it always does
            signal.signal(kind, handler)

    before = {}
    if threading.current_thread() is threading.main_thread():  # only it may
        for kind in (signal.SIGINT, signal.SIGTERM):
            before[kind] = signal.signal(kind, note)
    try:
        yield lambda: asked
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
            # --8<-- [end:stop_signals]
