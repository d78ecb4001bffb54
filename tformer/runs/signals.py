"""Ctrl-C, and SIGTERM as a scheduler sends it: stop after this step."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(Exception):
    """The run was asked to stop, and has saved all."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


GRACE = 1.0  # seconds in which one signal more is the same wish, as a double press


@contextmanager
def stop_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at SIGINT (Ctrl-C) or SIGTERM, instead of dying; a later one kills.

    Args:
        stop: is called between two instructions of Python: it must only take a note.
    """
    asked: list[float] = []

    def note(kind: int, _: FrameType | None) -> None:
        if not asked:
            stop()
        elif time.monotonic() > asked[0] + GRACE:
            for each, handler in before.items():  # it does what it always does
                signal.signal(each, handler)
            signal.raise_signal(kind)
        asked.append(time.monotonic())

    before = {}
    if threading.current_thread() is threading.main_thread():  # only it may
        for kind in (signal.SIGINT, signal.SIGTERM):
            before[kind] = signal.signal(kind, note)
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
