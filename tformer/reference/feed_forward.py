"""The position-wise feed-forward network in NumPy: two linear layers, one activation.

B batch · T length · D d_model · F d_ff
"""

import math
from collections.abc import Callable

import numpy as np

from tformer.reference.linear import Linear
from tformer.reference.weights import Weights, parts

erf = np.vectorize(math.erf, otypes=[float])  # which NumPy lacks


def relu(x: np.ndarray) -> np.ndarray:
    """Cut negative numbers off: max(0, x)."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """Weigh x by the probability that a standard normal number is below it: x Φ(x).

    Hendrycks and Gimpel 2016 (arXiv:1606.08415); the exact form, not that with tanh.
    """
    return x * (1 + erf(x / math.sqrt(2)).astype(x.dtype)) / 2


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Approximate the GELU: x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, as GPT-2."""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def relu2(x: np.ndarray) -> np.ndarray:
    """Square what ReLU leaves: max(0, x)² (So et al. 2021, arXiv:2109.08668)."""
    return np.square(relu(x))


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu2": relu2,
}


class FeedForward:
    """Transform each position by itself: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    Vaswani et al. 2017, equation 2. The twin of `tformer.FeedForward`, as it computes
    in `eval()`.

    Args:
        weights: "linear1.weight" (F, D), "linear2.weight" (D, F) and, or not, their
            biases.
        activation: "relu", as in the paper, "gelu", "gelu_tanh" or "relu2".

    Raises:
        ValueError: `activation` is unknown.
    """

    def __init__(self, weights: Weights, *, activation: str = "relu") -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation ({activation!r}) must be one of {', '.join(ACTIVATIONS)}"
            )
        self.activation = ACTIVATIONS[activation]
        of = parts(weights, "linear1", "linear2")
        self.linear1 = Linear(of["linear1"])
        self.linear2 = Linear(of["linear2"])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = self.activation(self.linear1(x))  # (B, T, F)
        return self.linear2(hidden)  # (B, T, D)
