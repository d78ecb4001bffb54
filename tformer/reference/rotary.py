"""Rotary positions in NumPy: queries and keys are rotated by their position's angle.

B batch · H heads · T length · Dh head_dim · R rotary_dim, the part that is rotated
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_above_0
from tformer.nn.rotary_scaling import (
    check_frequencies,
    check_layout,
    check_pairs,
    check_rotated,
)


def rotary_frequencies(head_dim: int, *, base: float = 10_000.0) -> np.ndarray:
    """Compute θᵢ = base^(−2i/Dh), by how many radians a position rotates pair i.

    Su et al. 2021, section 3.2.2 (arXiv:2104.09864). Returns float64 (Dh/2,).
    """
    check_pairs(head_dim, base)
    return base ** -(np.arange(0, head_dim, 2) / head_dim)


def rotate(
    x: np.ndarray, cosine: np.ndarray, sine: np.ndarray, *, layout: str = "pairs"
) -> np.ndarray:
    """Rotate each pair of numbers: (a, b) to (a cos − b sin, a sin + b cos).

    Of x (..., T, Dh), by angles (T, Dh/2). Pair i has the columns 2i and 2i + 1
    ("pairs"), or i and i + Dh/2 ("halves").
    """
    check_layout(layout)
    half = x.shape[-1] // 2
    of_pair = {
        "pairs": (np.s_[..., 0::2], np.s_[..., 1::2]),
        "halves": (np.s_[..., :half], np.s_[..., half:]),
    }
    first, second = of_pair[layout]
    a, b = x[first], x[second]  # (..., T, Dh/2)
    rotated = np.empty_like(x)  # (..., T, Dh)
    rotated[first] = a * cosine - b * sine
    rotated[second] = a * sine + b * cosine
    return rotated


@dataclass(eq=False)
class RotaryEmbedding:
    """Rotate the query or the key at position p by the angles p · θᵢ."""

    frequencies: np.ndarray  # θ (R/2,)
    factor: float = 1.0  # of what is rotated
    layout: str = "pairs"  # as in `rotate`
    head_dim: int | None = None  # Dh, of which R are rotated; R if None

    def __post_init__(self) -> None:
        check_layout(self.layout)
        check_above_0(factor=self.factor)
        self.head_dim = self.head_dim or 2 * self.frequencies.size
        check_frequencies(self.frequencies, self.head_dim)

    def __call__(
        self, x: np.ndarray, start: int = 0, *, positions: np.ndarray | None = None
    ) -> np.ndarray:
        """Rotate x (B, H, T, Dh) at positions start, start + 1, …, or at `positions`.

        These are (T,) or (B, T).
        """
        check_rotated(x, self.head_dim, start, positions)
        T, R = x.shape[2], 2 * len(self.frequencies)
        positions = np.arange(start, start + T) if positions is None else positions
        angle = positions.reshape(-1, 1, T, 1) * self.frequencies  # (B or 1, 1, T, R/2)
        cosine, sine = self.factor * np.cos(angle), self.factor * np.sin(angle)
        rotated = rotate(x[..., :R], cosine, sine, layout=self.layout)
        return np.concatenate((rotated, x[..., R:]), axis=-1)  # (B, H, T, Dh)


@dataclass(eq=False)
class LongRotaryEmbedding:
    """Rotate by other frequencies as soon as a text is longer than L: LongRoPE.

    Ding et al. 2024 (arXiv:2402.13753).
    """

    short: RotaryEmbedding
    long: RotaryEmbedding
    trained_len: int  # L

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Rotate x (B, H, T, Dh) at positions 0, 1, …; the same shape."""
        return self.long(x) if x.shape[2] > self.trained_len else self.short(x)
