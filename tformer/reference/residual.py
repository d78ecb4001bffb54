"""The residual connection in NumPy, with post-norm or pre-norm.

B batch · T length · D d_model
"""

from collections.abc import Callable

import numpy as np

from tformer.reference.norm import LayerNorm
from tformer.reference.weights import Weights, parts


class Residual:
    """Add a sub-layer's output to its input, and normalise.

    Post-norm, as in the paper (section 3.1): LayerNorm(x + f(x)).
    Pre-norm: x + f(LayerNorm(x)), first in tensor2tensor's code; see Baevski
    and Auli 2018 (arXiv:1809.10853) and Xiong et al. 2020 (arXiv:2002.04745).

    Args:
        weights: "norm.weight" (D,) and, or not, "norm.bias" (D,).
        norm_first: pre-norm instead of post-norm.
        eps: added to the variance in the norm.
    """

    def __init__(
        self, weights: Weights, *, norm_first: bool = False, eps: float = 1e-5
    ) -> None:
        self.norm_first = norm_first
        self.norm = LayerNorm(parts(weights, "norm")["norm"], eps)

    def __call__(
        self, x: np.ndarray, sublayer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Put `sublayer`, which maps (B, T, D) to (B, T, D), around x (B, T, D)."""
        if self.norm_first:
            return x + sublayer(self.norm(x))
        return self.norm(x + sublayer(x))
