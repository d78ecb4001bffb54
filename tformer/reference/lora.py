"""A low-rank adapter (LoRA) in NumPy: two small matrices beside a large one.

I input features · O output features · r rank
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.linear import Linear


@dataclass(eq=False)
class LoRALinear:
    """Compute x Wᵀ + b + s (x Aᵀ) Bᵀ: as a linear layer with the matrix W + s B A.

    Hu et al. 2021, arXiv:2106.09685. It is the same for a merged module.
    """

    base: Linear  # W (O, I) and b (O,)
    down: np.ndarray  # A (r, I)
    up: np.ndarray  # B (O, r)
    scale: np.ndarray  # s, without an axis

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (..., I) to (..., O)."""
        small = x @ self.down.T  # (..., r)
        return self.base(x) + self.scale * (small @ self.up.T)  # (..., O)
