"""A text in pieces, as a cache reads it."""

import itertools

import torch
from torch.testing import assert_close


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


@torch.no_grad()
def check_cached(module, x, nbytes):
    """Hold a layer with a cache to itself: in every split, with rows moved, copied.

    Args:
        module: a causal layer with `new_cache`.
        x: (B, T, D) in float64, T at least 2.
        nbytes: of the cache after x.
    """
    whole, T = module(x), x.shape[1]
    for pieces in splits(T):
        cache = module.new_cache(T)

        def call(start, end, cache=cache):
            return module(x[:, start:end], cache=cache)

        assert_close(in_pieces(call, pieces), whole, rtol=0, atol=1e-11)
        assert cache.nbytes == nbytes
    cache = module.new_cache(T + 1)
    module(x[:, :-1], cache=cache)
    other = cache.copy(T + 4)
    rows = torch.tensor([1, 1, 0])
    cache.reorder(rows)
    new = torch.randn(3, 1, x.shape[2])
    moved = torch.cat((x[rows, :-1], new), dim=1)
    assert_close(module(new, cache=cache), module(moved)[:, -1:])
    assert_close(module(x[:, -1:], cache=other), whole[:, -1:])
