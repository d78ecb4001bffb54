"""A linear layer in NumPy: y = x Wᵀ + b.

I input features · O output features
"""

from dataclasses import dataclass

import numpy as np


def linear(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
) -> np.ndarray:
    """Compute x Wᵀ + b for x (..., I) and W (O, I); returns (..., O)."""
    y = x @ weight.T  # (..., O)
    return y if bias is None else y + bias


@dataclass(eq=False)
class Linear:
    """A linear layer with its weights, the twin of `nn.Linear`."""

    weight: np.ndarray  # W (O, I)
    bias: np.ndarray | None = None  # b (O,), or None; one of 1 would broadcast

    def __post_init__(self) -> None:
        if self.bias is not None and self.bias.shape != self.weight.shape[:1]:
            raise ValueError(
                f"bias must be {self.weight.shape[:1]}, not {self.bias.shape}"
            )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (..., I) to (..., O)."""
        return linear(x, self.weight, self.bias)
