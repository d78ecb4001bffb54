"""Layer and RMS normalisation in NumPy: each vector gets the same length.

D d_model, or the width of a head
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_above_0, check_width


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> np.ndarray:
    """Compute (x - mean) / √(variance + ε) · weight + bias over the last axis.

    Ba et al. 2016, equations 3 and 4 (arXiv:1607.06450). The squares are divided by D,
    not by D - 1. ε keeps a constant vector from dividing by zero. Gain and bias are
    (D,), x and what is returned (..., D).
    """
    mean = x.mean(axis=-1, keepdims=True)  # (..., 1)
    variance = np.square(x - mean).mean(axis=-1, keepdims=True)  # (..., 1)
    normalised = (x - mean) / np.sqrt(variance + eps)  # (..., D)
    return normalised * weight if bias is None else normalised * weight + bias


def rms_norm(x: np.ndarray, gain: np.ndarray | None, eps: float = 1e-6) -> np.ndarray:
    """Compute x / √(mean(x²) + ε) · gain over the last axis of x (..., D).

    Zhang and Sennrich 2019, equation 4 (arXiv:1910.07467).
    """
    mean_square = np.square(x).mean(axis=-1, keepdims=True)  # (..., 1)
    normalised = x / np.sqrt(mean_square + eps)  # (..., D)
    return normalised if gain is None else normalised * gain


@dataclass(eq=False)
class LayerNorm:
    """Layer normalisation with its gain and bias."""

    weight: np.ndarray  # (D,)
    bias: np.ndarray | None = None  # (D,), or None
    eps: float = 1e-5  # added to the variance

    def __post_init__(self) -> None:
        check_above_0(eps=self.eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (..., D) over its last axis; another width is a ValueError."""
        check_width(len(self.weight), x)
        return layer_norm(x, self.weight, self.bias, self.eps)


@dataclass(eq=False)
class RMSNorm:
    """RMS normalisation with its gain."""

    weight: np.ndarray | None  # (D,), or None, which is a gain of 1
    eps: float = 1e-6  # added to the mean square
    plus_one: bool = False  # multiply by 1 + w in place of w

    def __post_init__(self) -> None:
        check_above_0(eps=self.eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (..., D) over its last axis; another width is a ValueError."""
        if self.weight is None:
            return rms_norm(x, None, self.eps)
        check_width(len(self.weight), x)
        gain = 1 + self.weight if self.plus_one else self.weight
        return rms_norm(x, gain, self.eps)
