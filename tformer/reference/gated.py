"""The gated feed-forward network in NumPy: one layer says what, another how much.

B batch · T length · D d_model · F d_ff
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tformer.reference.feed_forward import gelu, gelu_tanh, relu
from tformer.reference.linear import Linear
from tformer.reference.weights import Weights, parts


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + e^-x), without an overflow for large negative numbers."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def silu(x: np.ndarray) -> np.ndarray:
    """Compute x · sigmoid(x), also called Swish (arXiv:1710.05941)."""
    return x * sigmoid(x)


GATES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "glu": sigmoid,
    "reglu": relu,
    "geglu": gelu,
    "geglu_tanh": gelu_tanh,
    "swiglu": silu,
}


class GatedFeedForward:
    """Transform each position by itself: W₂(act(W₁ x) ⊙ W₃ x).

    Shazeer 2020 (arXiv:2002.05202). The twin of `tformer.GatedFeedForward`, as it
    computes in `eval()`.

    Args:
        weights: "gate_proj.weight" (F, D), "up_proj.weight" (F, D), "down_proj.weight"
            (D, F) and, or not, their biases.
        gate: act, by the name of the whole, as in `tformer.GatedFeedForward`.

    Raises:
        ValueError: `gate` is unknown.
    """

    def __init__(self, weights: Weights, *, gate: str = "swiglu") -> None:
        if gate not in GATES:
            raise ValueError(f"gate ({gate!r}) must be one of {', '.join(GATES)}")
        self.act = GATES[gate]
        of = parts(weights, "gate_proj", "up_proj", "down_proj")
        self.gate_proj = Linear(of["gate_proj"])  # W₁
        self.up_proj = Linear(of["up_proj"])  # W₃
        self.down_proj = Linear(of["down_proj"])  # W₂

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "GatedFeedForward":
        """Make the twin of tformer's module and its weights."""
        return GatedFeedForward(weights, gate=module.gate)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = self.act(self.gate_proj(x)) * self.up_proj(x)  # (B, T, F)
        return self.down_proj(hidden)  # (B, T, D)
