"""Positions in NumPy: what is added to a token says where it stands.

B batch · T length · D d_model
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_at_least_0, check_sequences


def sinusoidal_positional_encoding(
    length: int, d_model: int, *, start: int = 0
) -> np.ndarray:
    """Compute sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1.

    Vaswani et al. 2017, section 3.5. Returns float64 (length, D), D even, of the
    positions start, start + 1, …
    """
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even: a cosine for each sine")
    check_at_least_0(start=start)
    position = np.arange(start, start + length)[:, None]  # (length, 1)
    angle = position / 10000.0 ** (np.arange(0, d_model, 2) / d_model)  # (length, D/2)
    waves = np.stack((np.sin(angle), np.cos(angle)), axis=-1)  # (length, D/2, 2)
    return waves.reshape(length, d_model)


@dataclass(eq=False)
class SinusoidalPositionalEncoding:
    """Add the sinusoid of its position to each token: x + PE, for any length."""

    d_model: int

    def __call__(self, x: np.ndarray, *, start: int = 0) -> np.ndarray:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_sequences(self.d_model, x=x)
        T, D = x.shape[1:]
        table = sinusoidal_positional_encoding(T, D, start=start)
        return x + table.astype(x.dtype)


@dataclass(eq=False)
class LearnedPositionalEmbedding:
    """Add a learned vector for each position, a row of weight (max_len, D): x + P."""

    weight: np.ndarray

    def __call__(self, x: np.ndarray, *, start: int = 0) -> np.ndarray:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_at_least_0(start=start)
        max_len, d_model = self.weight.shape
        check_sequences(d_model, x=x)
        end = start + x.shape[1]
        if end > max_len:
            raise ValueError(
                f"x needs positions up to {end} but max_len is {max_len}: "
                f"x is {x.shape}, start is {start}"
            )
        return x + self.weight[start:end]
