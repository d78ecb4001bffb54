"""Hyper-connections in NumPy: several residual streams, mixed at each sub-layer.

B batch · T length · D d_model · N streams
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.feed_forward import sigmoid
from tformer.reference.linear import Linear
from tformer.reference.norm import RMSNorm


def sinkhorn(scores: np.ndarray, rounds: int = 20, eps: float = 1e-6) -> np.ndarray:
    """Make matrices (..., N, N) doubly stochastic: rows and columns sum to 1, nearly.

    exp(scores), then in turn each row and each column is divided by its sum.
    """
    if scores.ndim < 2 or scores.shape[-1] != scores.shape[-2]:
        raise ValueError(f"scores must be (..., N, N), not {scores.shape}")
    matrix = np.exp(scores - scores.max(axis=-1, keepdims=True))
    matrix = matrix / matrix.sum(axis=-1, keepdims=True) + eps
    for again in range(rounds):
        if again:
            matrix = matrix / (matrix.sum(axis=-1, keepdims=True) + eps)
        matrix = matrix / (matrix.sum(axis=-2, keepdims=True) + eps)
    return matrix


@dataclass(eq=False)
class HyperConnection:
    """A sub-layer f between N residual streams: X ← Mᵀ X + w f(norm(Xᵀ r))ᵀ."""

    branch: Callable[..., np.ndarray]  # f, (B, T, D) to (B, T, D)
    input_norm: RMSNorm  # of all streams of a token, without a gain
    proj: Linear  # from N · D to r, w and M
    base: np.ndarray  # ((2 + N) · N,)
    scale: np.ndarray  # (3,)
    streams: int  # N
    norm: Callable[..., np.ndarray] | None = None  # of what goes into f
    manifold: bool = True  # M is doubly stochastic, r and w positive
    rounds: int = 20  # of `sinkhorn`
    eps: float = 1e-6

    def weights(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Compute r, w (B, T, N) and M (B, T, N, N) of the streams x (B, T, N, D)."""
        N = self.streams
        made = self.proj(self.input_norm(x.reshape(*x.shape[:-2], -1)))
        made = made if self.manifold else np.tanh(made)
        made = made * np.repeat(self.scale, [N, N, N * N]) + self.base
        r, w, mix = np.split(made, [N, 2 * N], axis=-1)
        mix = mix.reshape(*mix.shape[:-1], N, N)
        if not self.manifold:
            return r, w, mix
        return (
            sigmoid(r) + self.eps,
            2 * sigmoid(w),
            sinkhorn(mix, self.rounds, self.eps),
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map the streams x (B, T, N, D) to streams."""
        r, w, mix = self.weights(x)
        y = (r[..., None] * x).sum(axis=-2)  # (B, T, D)
        y = self.branch(y if self.norm is None else self.norm(y))
        return mix.swapaxes(-1, -2) @ x + w[..., None] * y[..., None, :]
