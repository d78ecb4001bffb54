"""The residual connection in NumPy, with post-norm or pre-norm.

B batch · T length · D d_model
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.norm import LayerNorm


@dataclass(eq=False)
class Residual:
    """Add a sub-layer's output to its input, and normalise.

    Post-norm, as in the paper (section 3.1): LayerNorm(x + f(x)).
    Pre-norm: x + f(LayerNorm(x)), first in tensor2tensor's code; see Baevski
    and Auli 2018 (arXiv:1809.10853) and Xiong et al. 2020 (arXiv:2002.04745).
    """

    norm: LayerNorm
    norm_first: bool = False

    def __call__(
        self, x: np.ndarray, sublayer: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Put `sublayer`, which maps (B, T, D) to (B, T, D), around x (B, T, D)."""
        if self.norm_first:
            return x + sublayer(self.norm(x))
        return self.norm(x + sublayer(x))
