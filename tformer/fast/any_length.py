"""What `torch.export` is told about sizes: its graph serves every length, not one.

Elsewhere a size is a number, and code may ask whether it is above another. Asked while
a graph for every length is recorded, each such question would bind the graph to the
lengths with the same answer.
"""

from collections.abc import Iterator

import torch


def may_exceed(size: int, bound: int) -> bool:
    """Say whether a size is above a bound; in an export, yes: for some length it is."""
    return torch.compiler.is_exporting() or size > bound


def chunks(length: int, size: int) -> Iterator[slice]:
    """Cut positions 0 to length − 1 into slices of `size`; the last may reach beyond.

    In an export they are one slice: a graph holds no loop, so no number of chunks that
    depends on the length.
    """
    if torch.compiler.is_exporting():
        yield slice(0, length)
        return
    for begin in range(0, length, size):
        yield slice(begin, begin + size)
