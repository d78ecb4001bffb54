"""What `torch.export` is told about sizes: its graph serves every length, not one.

Elsewhere a size is a number, and code may ask whether it is above another. Asked while
a graph for every length is recorded, each such question would bind the graph to the
lengths with the same answer.
"""

import torch


def may_exceed(size: int, bound: int) -> bool:
    """Say whether a size is above a bound; in an export, yes: for some length it is."""
    return torch.compiler.is_exporting() or size > bound
