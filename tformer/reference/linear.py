"""A linear layer in NumPy: y = x Wᵀ + b.

I input features · O output features
"""

import numpy as np

from tformer.reference.weights import Weights, weight_and_bias


def linear(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray:
    """Compute x Wᵀ + b for x (..., I) and W (O, I); returns (..., O)."""
    y = x @ weight.T  # (..., O)
    return y if bias is None else y + bias


class Linear:
    """A linear layer with its weights, the twin of `nn.Linear`.

    Args:
        weights: "weight" (O, I) and, or not, "bias" (O,).
    """

    def __init__(self, weights: Weights) -> None:
        self.weight, self.bias = weight_and_bias(weights, "O", "I")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (..., I) to (..., O)."""
        return linear(x, self.weight, self.bias)
