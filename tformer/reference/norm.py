"""Layer and RMS normalisation in NumPy: each vector gets the same length.

D d_model, or the width of a head
"""

import math
from dataclasses import dataclass

import numpy as np


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> np.ndarray:
    """Compute (x - mean) / √(variance + ε) · weight + bias over the last axis.

    Ba et al. 2016, equations 3 and 4 (arXiv:1607.06450). The squares are divided by D,
    not by D - 1. ε keeps a constant vector from dividing by zero.

    Args:
        x: (..., D).
        weight: (D,), the gain.
        bias: (D,) or None.
        eps: ε, added to the variance.

    Returns:
        (..., D).
    """
    mean = x.mean(axis=-1, keepdims=True)  # (..., 1)
    variance = np.square(x - mean).mean(axis=-1, keepdims=True)  # (..., 1)
    normalised = (x - mean) / np.sqrt(variance + eps)  # (..., D)
    return normalised * weight if bias is None else normalised * weight + bias


def rms_norm(x: np.ndarray, gain: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Compute x / √(mean(x²) + ε) · gain over the last axis.

    Zhang and Sennrich 2019, equation 4 (arXiv:1910.07467).

    Args:
        x: (..., D).
        gain: (D,).
        eps: ε, added to the mean square.

    Returns:
        (..., D).
    """
    mean_square = np.square(x).mean(axis=-1, keepdims=True)  # (..., 1)
    return x / np.sqrt(mean_square + eps) * gain  # (..., D)


@dataclass(eq=False)
class LayerNorm:
    """Layer normalisation with its gain and bias, the twin of `tformer.LayerNorm`.

    Raises:
        ValueError: `eps` is not above 0.
    """

    weight: np.ndarray  # (D,)
    bias: np.ndarray | None = None  # (D,), or None
    eps: float = 1e-5  # added to the variance

    def __post_init__(self) -> None:
        check_eps(self.eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (..., D) over its last axis; another width is a ValueError."""
        check_width(x, len(self.weight))
        return layer_norm(x, self.weight, self.bias, self.eps)


@dataclass(eq=False)
class RMSNorm:
    """RMS normalisation with its gain, the twin of `tformer.RMSNorm`.

    Raises:
        ValueError: `eps` is not above 0.
    """

    weight: np.ndarray  # (D,)
    eps: float = 1e-6  # added to the mean square
    plus_one: bool = False  # multiply by 1 + w in place of w

    def __post_init__(self) -> None:
        check_eps(self.eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (..., D) over its last axis; another width is a ValueError."""
        check_width(x, len(self.weight))
        gain = 1 + self.weight if self.plus_one else self.weight
        return rms_norm(x, gain, self.eps)


def check_eps(eps: float) -> None:
    """Raise unless `eps` is above 0."""
    if not 0 < eps < math.inf:
        raise ValueError(f"eps ({eps}) must be above 0 and finite")


def check_width(x: np.ndarray, width: int) -> None:
    """Raise unless x (..., D) has this width: one of 1 would broadcast."""
    if x.shape[-1] != width:
        raise ValueError(
            f"x has width {x.shape[-1]} but d_model is {width}: x is {x.shape}"
        )
