"""One training in several processes: their number, this one's rank, sums over all.

Without `torch.distributed` set up, there is one process.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

T = TypeVar("T")


def num_processes() -> int:
    """Count the processes of this training."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_rank() -> int:
    """Tell which of them this is; the first is 0, which prints and writes."""
    return dist.get_rank() if num_processes() > 1 else 0


def sum_over_processes(x: Tensor) -> Tensor:
    """Add up x over all processes; each gets the sum."""
    if num_processes() > 1:
        x = x.clone()
        dist.all_reduce(x)
    return x


def wait_for_all() -> None:
    """Wait until every process has come here."""
    if num_processes() > 1:
        dist.barrier()


def from_all(value: T) -> list[T]:
    """Collect what each process gives, in the order of their ranks; each gets all."""
    values = [value] * num_processes()
    if num_processes() > 1:
        dist.all_gather_object(values, value)
    return values


@contextmanager
def syncing(model: nn.Module, wanted: bool) -> Iterator[None]:
    """Let the backward pass send gradients to the other processes, or keep them.

    Of a batch in k parts only the last one's pass sends: once, what all have added up.
    """
    # FSDP gives models this method, and tensors the other: neither need be imported.
    if set_sync := getattr(model, "set_requires_gradient_sync", None):
        set_sync(wanted)
        yield
    elif not wanted and isinstance(model, nn.parallel.DistributedDataParallel):
        with model.no_sync():
            yield
    else:
        yield


def not_finite(named: Iterable[tuple[str, Tensor]]) -> str | None:
    """Name the first tensor with NaN or infinity in it, if there is one.

    Of several processes all must call it; each looks at what it holds, which under FSDP
    is a part, maybe empty, and all get the same answer.
    """
    found = {}
    for name, x in named:
        own = x.to_local() if hasattr(x, "to_local") else x
        found[name] = ~own.detach().isfinite().all()
    counts = sum_over_processes(torch.stack(list(found.values())).float()).tolist()
    return next((n for n, count in zip(found, counts, strict=True) if count), None)
