"""The position-wise feed-forward network in NumPy, plain and gated.

B batch · T length · D d_model · F d_ff
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.checks import check_one_of
from tformer.reference.linear import Linear

erf = np.vectorize(math.erf, otypes=[float])  # which NumPy lacks


def relu(x: np.ndarray) -> np.ndarray:
    """Compute max(0, x)."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """Compute x Φ(x), Φ the distribution function of a standard normal number.

    Hendrycks and Gimpel 2016 (arXiv:1606.08415); the exact form, not that with tanh.
    """
    return x * (1 + erf(x / math.sqrt(2)).astype(x.dtype)) / 2


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """Approximate the GELU: x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, as GPT-2."""
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def relu2(x: np.ndarray) -> np.ndarray:
    """Compute max(0, x)² (So et al. 2021, arXiv:2109.08668)."""
    return np.square(relu(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + e^-x), without an overflow for large negative numbers."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def silu(x: np.ndarray) -> np.ndarray:
    """Compute x · sigmoid(x), also called Swish (arXiv:1710.05941)."""
    return x * sigmoid(x)


ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    f.__name__: f for f in (relu, gelu, gelu_tanh, relu2, silu)
}
GATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "glu": sigmoid,
    "reglu": relu,
    "geglu": gelu,
    "geglu_tanh": gelu_tanh,
    "swiglu": silu,
}


@dataclass(eq=False)
class FeedForward:
    """Transform each position by itself: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    Vaswani et al. 2017, equation 2.
    """

    linear1: Linear  # W₁, from D to F
    linear2: Linear  # W₂, from F to D
    activation: str = "relu"  # "relu" in the paper

    def __post_init__(self) -> None:
        check_one_of("activation", self.activation, ACTIVATIONS)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = ACTIVATIONS[self.activation](self.linear1(x))  # (B, T, F)
        return self.linear2(hidden)  # (B, T, D)


@dataclass(eq=False)
class GatedFeedForward:
    """Transform each position by itself: W₂(act(W₁ x) ⊙ W₃ x).

    Shazeer 2020 (arXiv:2002.05202).
    """

    gate_proj: Linear  # W₁, from D to F
    up_proj: Linear  # W₃, from D to F
    down_proj: Linear  # W₂, from F to D
    gate: str = "swiglu"  # act, by the name of the whole

    def __post_init__(self) -> None:
        check_one_of("gate", self.gate, GATES)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = GATES[self.gate](self.gate_proj(x)) * self.up_proj(x)  # (B, T, F)
        return self.down_proj(hidden)  # (B, T, D)
