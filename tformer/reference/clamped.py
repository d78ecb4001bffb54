"""A gated feed-forward network with bounds, in NumPy: an expert of gpt-oss.

B batch · T length · D d_model · F d_ff
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.feed_forward import GatedFeedForward, sigmoid


def clamped_swiglu(
    gate: np.ndarray, up: np.ndarray, *, limit: float = 7.0, alpha: float = 1.702
) -> np.ndarray:
    """Compute (u + 1) ⊙ g σ(α g), with g = min(gate, c) and u = up within [−c, c].

    As gpt-oss's code has it; c is `limit`.
    """
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return (up + 1) * gate * sigmoid(alpha * gate)


@dataclass(eq=False)
class ClampedFeedForward(GatedFeedForward):
    """Transform each position by itself: W₂ clamped_swiglu(W₁ x + b₁, W₃ x + b₃) + b₂.

    An expert of gpt-oss.
    """

    limit: float = 7.0
    alpha: float = 1.702

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        gate, up = self.gate_proj(x), self.up_proj(x)  # (B, T, F)
        hidden = clamped_swiglu(gate, up, limit=self.limit, alpha=self.alpha)
        return self.down_proj(hidden)  # (B, T, D)
