"""What formulas over whole arrays are written with."""

import numpy as np

from tformer.check.calling import Array


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


def tiled(x: Array, times: int, axis: int) -> Array:
    """Put the whole so many times behind itself, along an axis."""
    return np.concatenate([x] * times, axis)


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
