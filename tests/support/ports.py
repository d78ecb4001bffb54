"""Ports that nobody else gets while a test needs them."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Find a free port of this machine, and keep it from all who ask for any port.

    A port that was let go can be another's before it is used, the sooner the busier the
    machine. This one stays bound, without listening: whoever names it, and allows its
    reuse as servers do, can still listen there.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
