"""Positions in NumPy: what is added to a token says where it stands.

B batch · T length · D d_model
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_at_least_0, check_one_of, check_sequences


def sinusoidal_positional_encoding(
    length: int, d_model: int, *, start: int = 0, layout: str = "pairs"
) -> np.ndarray:
    """Compute sin(p / 10000^(2i/D)) in column 2i, and the cosine in column 2i + 1.

    Vaswani et al. 2017, section 3.5. Returns float64 (length, D), D even, of the
    positions start, start + 1, … With the layout "halves" all sines come first.
    """
    check_one_of("layout", layout, ("pairs", "halves"))
    if d_model % 2:
        raise ValueError(f"d_model ({d_model}) must be even: a cosine for each sine")
    check_at_least_0(start=start)
    position = np.arange(start, start + length)[:, None]  # (length, 1)
    angle = position / 10000.0 ** (np.arange(0, d_model, 2) / d_model)  # (length, D/2)
    if layout == "halves":
        return np.concatenate((np.sin(angle), np.cos(angle)), axis=1)
    waves = np.stack((np.sin(angle), np.cos(angle)), axis=-1)  # (length, D/2, 2)
    return waves.reshape(length, d_model)


@dataclass(eq=False)
class SinusoidalPositionalEncoding:
    """Add the sinusoid of its position to each token: x + PE, for any length."""

    d_model: int
    layout: str = "pairs"  # or "halves": all sines, then all cosines

    def __call__(self, x: np.ndarray, *, start: int = 0) -> np.ndarray:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_sequences(self.d_model, x=x)
        T, D = x.shape[1:]
        table = sinusoidal_positional_encoding(T, D, start=start, layout=self.layout)
        return x + table.astype(x.dtype)


@dataclass(eq=False)
class LearnedPositionalEmbedding:
    """Add a learned vector for each position, a row of weight (max_len, D): x + P."""

    weight: np.ndarray
    offset: int = 0  # rows before that of position 0, which nothing uses

    def __call__(self, x: np.ndarray, *, start: int = 0) -> np.ndarray:
        """Add positions start, start + 1, … to x (B, T, D); returns (B, T, D)."""
        check_at_least_0(start=start)
        max_len, d_model = len(self.weight) - self.offset, self.weight.shape[1]
        check_sequences(d_model, x=x)
        end = start + x.shape[1]
        if end > max_len:
            raise ValueError(
                f"x needs positions up to {end} but max_len is {max_len}: "
                f"x is {x.shape}, start is {start}"
            )
        return x + self.weight[self.offset + start : self.offset + end]
