"""The short convolution in NumPy: a sum over the last few tokens, one by one.

B batch · T new tokens · C channels, the width · K kernel, how many tokens are mixed
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.feed_forward import silu


def short_convolution(
    x: np.ndarray,
    weight: np.ndarray,
    past: np.ndarray | None = None,
    bias: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute y_t = Σᵢ wᵢ ⊙ x_(t − K + 1 + i): causal, and each channel by itself.

    x is (B, T, C), the weight (C, K), and `past` (B, K − 1, C), zeros if not given; a
    bias (C,) is added.
    Returns y (B, T, C) and the past of the next call.
    """
    (B, T, C), K = x.shape, weight.shape[1]
    past = np.zeros((B, K - 1, C), x.dtype) if past is None else past
    if past.shape != (B, K - 1, C) or len(weight) != C:
        raise ValueError(
            f"x {x.shape} and past {past.shape} do not fit weight {weight.shape}: "
            "they must be (B, T, C), (B, K - 1, C)"
        )
    seen = np.concatenate((past, x), axis=1)  # (B, K - 1 + T, C)
    y = np.zeros_like(x)
    for t in range(T):
        for i in range(K):
            y[:, t] += weight[:, i] * seen[:, t + i]
    return y if bias is None else y + bias, seen[:, T:]


@dataclass(eq=False)
class ShortConvolution:
    """Mix each channel with itself in the K − 1 tokens before, then apply SiLU."""

    weight: np.ndarray  # (C, K)
    bias: np.ndarray | None = None  # (C,), or None

    def __call__(
        self, x: np.ndarray, past: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Map x (B, T, C) to (B, T, C) and the new past, as `short_convolution`."""
        y, past = short_convolution(x, self.weight, past, self.bias)
        return silu(y), past
