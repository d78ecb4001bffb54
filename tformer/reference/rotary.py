"""Rotary positions in NumPy: queries and keys are turned by their position's angle.

B batch · H heads · T length · Dh head_dim
"""

from typing import Any

import numpy as np

from tformer.checks import check_at_least_0, check_divisible, check_positive
from tformer.reference.weights import Weights, parts

LAYOUTS = ("pairs", "halves")


def rotary_frequencies(head_dim: int, *, base: float = 10_000.0) -> np.ndarray:
    """Compute θᵢ = base^(−2i/Dh), by how many radians pair i turns at each position.

    Su et al. 2021, section 3.2.2 (arXiv:2104.09864).

    Args:
        head_dim: width Dh of a head; even, as two numbers make a pair.
        base: above 1.

    Returns:
        float64 (Dh/2,).

    Raises:
        ValueError: `head_dim` is odd or below 1, or `base` is not above 1.
    """
    check_positive(head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"head_dim ({head_dim}) must be even: two numbers make a pair")
    if not base > 1:
        raise ValueError(f"base ({base}) must be above 1")
    return base ** -(np.arange(0, head_dim, 2) / head_dim)


def rotate(
    x: np.ndarray, cosine: np.ndarray, sine: np.ndarray, *, layout: str = "pairs"
) -> np.ndarray:
    """Turn each pair of numbers: (a, b) to (a cos − b sin, a sin + b cos).

    Args:
        x: (..., T, Dh).
        cosine: (T, Dh/2), of the angle of each position and pair.
        sine: (T, Dh/2).
        layout: "pairs": 2i and 2i + 1 are pair i; "halves": i and i + Dh/2.

    Returns:
        (..., T, Dh), in the dtype of x.

    Raises:
        ValueError: `layout` is unknown.
    """
    check_layout(layout)
    half = x.shape[-1] // 2
    of_pair = {
        "pairs": (np.s_[..., 0::2], np.s_[..., 1::2]),
        "halves": (np.s_[..., :half], np.s_[..., half:]),
    }
    first, second = of_pair[layout]
    a, b = x[first], x[second]  # (..., T, Dh/2)
    turned = np.empty_like(x)  # (..., T, Dh)
    turned[first] = a * cosine - b * sine
    turned[second] = a * sine + b * cosine
    return turned


class RotaryEmbedding:
    """Turn the query or the key at position p by the angles p · θᵢ.

    Args:
        frequencies: (Dh/2,).
        factor: multiplies what is turned.
        layout: "pairs" or "halves", as in `rotate`.

    Raises:
        ValueError: `frequencies` has no number or several axes, `factor` is not above
            0, or `layout` is unknown.
    """

    def __init__(
        self, frequencies: np.ndarray, *, factor: float = 1.0, layout: str = "pairs"
    ) -> None:
        if frequencies.ndim != 1 or len(frequencies) == 0:
            raise ValueError(
                f"frequencies must be (head_dim / 2,), not {frequencies.shape}"
            )
        if not factor > 0:
            raise ValueError(f"factor ({factor}) must be above 0")
        check_layout(layout)
        self.frequencies = frequencies.astype(np.float64)
        self.factor = factor
        self.layout = layout

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "RotaryEmbedding":
        """Make the twin of tformer's module, which has no weights."""
        parts(weights)  # raises if there are some
        frequencies = module.frequencies.cpu().numpy().copy()
        return RotaryEmbedding(frequencies, factor=module.factor, layout=module.layout)

    def __call__(self, x: np.ndarray, *, start: int = 0) -> np.ndarray:
        """Turn x (B, H, T, Dh), whose first position is `start`."""
        if x.ndim != 4 or x.shape[-1] != 2 * len(self.frequencies):
            raise ValueError(
                "x must be (batch, heads, length, head_dim = "
                f"{2 * len(self.frequencies)}), not {x.shape}"
            )
        check_at_least_0(start=start)
        position = np.arange(start, start + x.shape[2])[:, None]  # (T, 1)
        angle = position * self.frequencies  # (T, Dh/2)
        cosine, sine = self.factor * np.cos(angle), self.factor * np.sin(angle)
        return rotate(x, cosine, sine, layout=self.layout)


def pairs_to_halves(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Reorder the rows of W_q or W_k of a model with "pairs" for one with "halves".

    Args:
        weight: (H · Dh, ...): a matrix, its bias, or with one head a gain (Dh,).
        num_heads: how many heads lie in it: for W_k the key/value heads.

    Returns:
        A copy of the same shape.

    Raises:
        ValueError: the rows are no even number in each head.
    """
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_pair = weight.reshape(num_heads, -1, 2, *weight.shape[1:])  # (H, Dh/2, 2, ...)
    return by_pair.swapaxes(1, 2).reshape(weight.shape)


def halves_to_pairs(weight: np.ndarray, num_heads: int) -> np.ndarray:
    """Undo `pairs_to_halves`: row i of each head becomes row 2i again."""
    check_divisible(rows=weight.shape[0], **{"2 · num_heads": 2 * num_heads})
    by_half = weight.reshape(num_heads, 2, -1, *weight.shape[1:])  # (H, 2, Dh/2, ...)
    return by_half.swapaxes(1, 2).reshape(weight.shape)


def check_layout(layout: str) -> None:
    """Raise unless `layout` is one of the two."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout ({layout!r}) must be one of {', '.join(LAYOUTS)}")
