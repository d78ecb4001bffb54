"""What formulas over whole arrays are written with.

An altered formula may ask for more than any computer has: 2 to the power of what was
a logarithm, as the length of an array. So lengths that are computed have a limit here,
far above those of the cases.
"""

from types import SimpleNamespace
from typing import SupportsIndex

import numpy as np

from tformer.check.calling import Array

LONGEST = 64  # entries of an axis or steps of a loop that are made by their number
LARGEST = 1 << 16  # numbers in an array that is made of another


def bounded(length: float) -> int:
    """Return a length as it is.

    Raises:
        ValueError: it is above `LONGEST`.
    """
    if not length <= LONGEST:
        raise ValueError(f"a length of {length} is more than {LONGEST}")
    return int(length)


def arange(stop: float) -> Array:
    """Count from 0."""
    return np.arange(bounded(stop))


def steps(start: SupportsIndex, stop: SupportsIndex) -> range:
    """Count as `range` does."""
    bounded(int(stop) - int(start))
    return range(start, stop)


def repeat(x: Array, times: int, axis: int) -> Array:
    """Put each entry so many times behind itself, along an axis."""
    return np.repeat(_fits(x, times), times, axis)


def tiled(x: Array, times: int, axis: int) -> Array:
    """Put the whole so many times behind itself, along an axis."""
    return np.concatenate([_fits(x, times)] * times, axis)


def _fits(x: Array, times: int) -> Array:
    if np.size(x) * bounded(times) > LARGEST:
        raise ValueError(f"{times} times {np.size(x)} numbers are more than {LARGEST}")
    return x


# NumPy, for formulas: with limits where a number becomes a length.
bounded_numpy = SimpleNamespace(**vars(np) | {"arange": arange, "repeat": repeat})


def mean(x: Array, axis: int = -1) -> Array:
    """Average along an axis, which stays."""
    return np.asarray(np.mean(x, axis, keepdims=True))


def total(x: Array, axis: int = -1) -> Array:
    """Sum along an axis, which stays."""
    return np.asarray(np.sum(x, axis, keepdims=True))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def softmax(x: Array, axis: int = -1) -> Array:
    """Shares that sum to 1; 0 throughout where all is -inf."""
    largest = x.max(axis, keepdims=True)
    powers = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    sums = powers.sum(axis, keepdims=True)
    return np.asarray(powers / np.where(sums == 0, 1, sums))


def transposed(x: Array) -> Array:
    """Swap the last two axes."""
    return np.asarray(np.swapaxes(x, -1, -2))


def split(x: Array, heads: int) -> Array:
    """(B, T, D) → (B, H, T, D/H)."""
    B, T, D = x.shape
    return x.reshape(B, T, heads, D // heads).swapaxes(1, 2)


def joined(x: Array) -> Array:
    """(B, H, T, Dh) → (B, T, H Dh)."""
    B, H, T, D = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * D)
