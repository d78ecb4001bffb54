"""What tests on a GPU share: the device, moving to it, a host that must not wait."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
on_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")


def moved(x, dtype=None, device=DEVICE):
    """Move a tensor to the device, and its numbers to the dtype too; leave the rest."""
    if not isinstance(x, torch.Tensor):
        return x
    return x.to(device, dtype if x.is_floating_point() else None)


@contextmanager
def no_waiting() -> Iterator[None]:
    """Raise a RuntimeError where the host would wait for the GPU."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
