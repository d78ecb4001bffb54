"""Ctrl-C and SIGTERM ask a run to save all and stop."""

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

    It is called between two instructions of Python, and must only take a note.
    """
    asked: list[float] = []

    def note(kind: int, _: FrameType | None) -> None:
        asked.append(time.monotonic())
        if asked[-1] > asked[0] + GRACE:  # it does what it always does
            restore()
            signal.raise_signal(kind)
        stop()

    def restore() -> None:
        for kind, handler in before.items():
            signal.signal(kind, handler)

    main = threading.current_thread() is threading.main_thread()  # only it may
    kinds = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {kind: signal.signal(kind, note) for kind in kinds}
    try:
        yield
    finally:
        restore()
