"""Layer normalisation in NumPy: each token's vector gets mean 0 and variance 1.

D d_model
"""

import math

import numpy as np

from tformer.reference.weights import Weights, weight_and_bias


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    eps: float = 1e-5,
) -> np.ndarray:
    """Compute (x - mean) / √(variance + ε) · weight + bias over the last axis.

    Ba et al. 2016, equations 3 and 4 (arXiv:1607.06450). The squares are divided by D,
    not by D - 1.

    Args:
        x: (..., D).
        weight: (D,), the gain.
        bias: (D,) or None.
        eps: added to the variance, so that a constant vector does not divide by zero.

    Returns:
        (..., D).
    """
    mean = x.mean(axis=-1, keepdims=True)  # (..., 1)
    variance = np.square(x - mean).mean(axis=-1, keepdims=True)  # (..., 1)
    normalised = (x - mean) / np.sqrt(variance + eps)  # (..., D)
    return normalised * weight if bias is None else normalised * weight + bias


class LayerNorm:
    """Layer normalisation with its gain and bias, the twin of `tformer.LayerNorm`.

    Args:
        weights: "weight" (D,) and, or not, "bias" (D,).
        eps: added to the variance.

    Raises:
        ValueError: `eps` is not above 0.
    """

    def __init__(self, weights: Weights, eps: float = 1e-5) -> None:
        self.weight, self.bias = weight_and_bias(weights, "D")
        if not 0 < eps < math.inf:
            raise ValueError(f"eps ({eps}) must be above 0 and finite")
        self.eps = eps

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
        return layer_norm(x, self.weight, self.bias, self.eps)
