"""Attention in other code, for mistakes that the oracle's loops cannot make."""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from tformer.check.spec import Array, mistakes

if TYPE_CHECKING:
    from torch import Tensor


def in_torch(
    query: "Tensor", key: "Tensor", value: "Tensor", mask: "Tensor | None" = None
) -> "Tensor":
    """Attend by methods of tensors: the right code of mistakes beside the numbers."""
    scores = query @ key.transpose(-2, -1) / sqrt(query.shape[-1])
    if mask is None:
        return scores.softmax(-1) @ value
    weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ value


IN_TORCH = mistakes(
    in_torch,
    """
    # attention#the-code
    nan_gradient gradient: You replaced NaN by 0 after a softmax of -inf: the
        gradient is NaN all the same.
        scores.masked → (scores + (0 * scores.detach()).masked
        -1e30).softmax(-1) * mask → -np.inf)).softmax(-1).nan_to_num(0.0)
    detached gradient: You cut the query off: no gradient flows to it.
        query @ key → query.detach() @ key
    widened dtype: You return a wider dtype than came in: go back to the query's.
        scores.softmax(-1) @ value → scores.softmax(-1).double() @ value.double()
    scaled_in_place inputs: You changed the query itself: write into a tensor of
        your own.
        query @ key.transpose(-2, -1) / sqrt → query.div_(sqrt
        (query.shape[-1]) → (query.shape[-1])) @ key.transpose(-2, -1)
    needs_rows layout: You call `view` on what may lie in memory in another order:
        use `reshape`.
        query @ key → query.view(-1).view(query.shape) @ key
    """,
    "torch",
)


def softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Divide exp by its sum, 0 where all are -inf."""
    largest = x.max(axis, keepdims=True)
    powers = np.exp(x - np.where(largest == -np.inf, 0.0, largest))
    total = powers.sum(axis, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1.0, total))


def at_once(query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    """Attend with all heads at once."""
    scores = query @ key.swapaxes(-1, -2) / sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores, -1) @ value


AT_ONCE = mistakes(
    at_once,
    """
    # attention#what-if-softmax-runs-over-the-wrong-axis
    softmax_over_heads: You took the softmax over the heads: it runs over the keys.
        (scores, -1) → (scores, 1)
    softmax_over_batch: You took the softmax over the batch: it runs over the keys.
        (scores, -1) → (scores, 0)
    softmax_over_all: You took one softmax over all scores of a head, not of each query.
        (scores, -1) → (scores, (-1, -2))
    """,
)


def shares(x: Array) -> Array:
    """Divide by the sum, as it is."""
    total = x.sum(-1, keepdims=True)
    return np.asarray(x / np.where(total == 0, 1.0, total))


def cosine(x: Array, y: Array) -> float:
    """Multiply two vectors of length 1."""
    return float(x @ y / sqrt(x @ x * (y @ y)))


def nearness(x: Array, y: Array) -> float:
    """Compute the negative of the squared distance."""
    return float(-((x - y) ** 2).sum())


def of_four(mask: Array) -> Array:
    """Refuse a mask of fewer axes.

    Raises:
        ValueError: it has fewer than four.
    """
    if mask.ndim < 4:
        raise ValueError(f"mask must have four axes, not {mask.ndim}")
    return mask
