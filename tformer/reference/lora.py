"""A low-rank adapter (LoRA) in NumPy: two small matrices beside a large one.

I input features · O output features · r rank
"""

from typing import Any

import numpy as np

from tformer.reference.linear import Linear
from tformer.reference.weights import Weights, parts


class LoRALinear:
    """Compute x Wᵀ + b + s (x Aᵀ) Bᵀ: as a linear layer with the matrix W + s B A.

    Hu et al. 2021, arXiv:2106.09685. The twin of `tformer.LoRALinear`, as it computes
    in `eval()`.

    Args:
        weights: "base.weight" W (O, I) and, or not, "base.bias" b (O,); "down" A
            (r, I), "up" B (O, r) and "scale" s, an array without an axis.
    """

    def __init__(self, weights: Weights) -> None:
        of = parts(weights, "base", "down", "up", "scale")
        self.base = Linear(of["base"])
        self.down, self.up = of["down"][""], of["up"][""]
        self.scale = of["scale"][""]

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "LoRALinear":
        """Make the twin of tformer's module and its weights.

        Raises:
            ValueError: the adapter is merged: W has B A in it already.
        """
        if module.original is not None:
            raise ValueError("module is merged: unmerge it first")
        return LoRALinear(weights)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (..., I) to (..., O)."""
        small = x @ self.down.T  # (..., r)
        return self.base(x) + self.scale * (small @ self.up.T)  # (..., O)
