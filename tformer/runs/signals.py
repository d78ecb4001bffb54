"""Ctrl-C, and SIGTERM as a scheduler sends it: stop after this step."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at SIGINT (Ctrl-C) or SIGTERM, instead of dying; a second one kills.

    Args:
        stop: is called between two instructions of Python: it must only take a note.
    """

    def note(_: int, __: FrameType | None) -> None:
        stop()
        for kind, handler in before.items():  # the next one does what it always does
            signal.signal(kind, handler)

    before = {}
    if threading.current_thread() is threading.main_thread():  # only it may
        for kind in (signal.SIGINT, signal.SIGTERM):
            before[kind] = signal.signal(kind, note)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
