"""What is measured: a workload, and who runs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

OURS, PEER, PLAIN = "tformer", "peer", "plain"  # the roles of contenders


@dataclass(frozen=True)
class Contender:
    """One who runs a workload.

    Args:
        name: as the page shows it.
        run: what is timed.
        role: OURS, PEER, or PLAIN for a form written in a few lines.
        output: what must agree with the others' (tensors or arrays); what `run`
            returns if None.
        checked: False where its weights are its own, so that nothing can agree.
        seconds: replaces `run` where the time is taken elsewhere, as of an import.
    """

    name: str
    run: Callable[[], Any]
    role: str = PEER
    output: Callable[[], Any] | None = None
    checked: bool = True
    seconds: Callable[[], float] | None = None


@dataclass(frozen=True)
class Workload:
    """A row: one task of one size and dtype, for several contenders.

    Args:
        family: what it belongs to, a section of the page.
        name: what is done.
        size: its shape in words: "16 × 128".
        make: builds the contenders. Nothing is built before its turn.
        dtype: "float32" or "bfloat16".
        length: T, where a plot over lengths needs it.
        short: part of the short form.
        device: the only one that it is for, "cpu" or "cuda"; both if empty.
    """

    family: str
    name: str
    size: str
    make: Callable[[], Sequence[Contender]]
    dtype: str = "float32"
    length: int | None = None
    short: bool = False
    device: str = ""

    @property
    def key(self) -> str:
        """One name for --only."""
        words = (self.family, self.name, self.size, self.dtype)
        return "/".join(words).replace(" ", "-")


def ours(run: Callable[[], Any], name: str = "tformer", **options: Any) -> Contender:
    return Contender(name, run, OURS, **options)


def plain(name: str, run: Callable[[], Any], **options: Any) -> Contender:
    return Contender(name, run, PLAIN, **options)


without_gradients = torch.no_grad()  # around what it is called with


def dtype_of(name: str) -> torch.dtype:
    return getattr(torch, name)
