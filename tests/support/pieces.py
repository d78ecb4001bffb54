"""A text in pieces, as a cache reads it."""

import itertools

import torch


def splits(length: int) -> list[tuple[int, ...]]:
    """Every way to cut so many tokens into pieces: 2^(length - 1) of them."""
    if length == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(1, length + 1)
        for rest in splits(length - first)
    ]


def in_pieces(call, pieces):
    """Hand over [0, T) piece by piece: the output of all, put together."""
    ends = list(itertools.accumulate(pieces))
    return torch.cat(
        [call(end - piece, end) for piece, end in zip(pieces, ends, strict=True)],
        dim=1,
    )
