"""RMS normalisation in NumPy: each vector is divided by its root mean square.

D d_model, or the width of a head
"""

import math
from typing import Any

import numpy as np

from tformer.reference.weights import Weights, only_weight


def rms_norm(x: np.ndarray, gain: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Compute x / √(mean(x²) + ε) · gain over the last axis.

    Zhang and Sennrich 2019, equation 4 (arXiv:1910.07467).

    Args:
        x: (..., D).
        gain: (D,).
        eps: added to the mean square, so that a vector of zeros does not divide by 0.

    Returns:
        (..., D).
    """
    mean_square = np.square(x).mean(axis=-1, keepdims=True)  # (..., 1)
    return x / np.sqrt(mean_square + eps) * gain  # (..., D)


class RMSNorm:
    """RMS normalisation with its gain, the twin of `tformer.RMSNorm`.

    Args:
        weights: "weight" (D,).
        eps: added to the mean square.
        plus_one: multiply by 1 + w in place of w.

    Raises:
        ValueError: `eps` is not above 0.
    """

    def __init__(
        self, weights: Weights, eps: float = 1e-6, *, plus_one: bool = False
    ) -> None:
        self.weight = only_weight(weights, "D")
        if not 0 < eps < math.inf:
            raise ValueError(f"eps ({eps}) must be above 0 and finite")
        self.eps = eps
        self.plus_one = plus_one

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "RMSNorm":
        """Make the twin of tformer's module and its weights."""
        return RMSNorm(weights, module.eps, plus_one=module.plus_one)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (..., D) over its last axis; returns (..., D).

        Raises:
            ValueError: x has another width; one of 1 would broadcast.
        """
        if x.shape[-1] != len(self.weight):
            raise ValueError(
                f"x has width {x.shape[-1]} but d_model is {len(self.weight)}: "
                f"x is {x.shape}"
            )
        gain = 1 + self.weight if self.plus_one else self.weight
        return rms_norm(x, gain, self.eps)
