"""A low-rank adapter (LoRA) in NumPy: two small matrices beside a large one.

I input features · O output features · r rank
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.linear import Linear


@dataclass(eq=False)
class LoRALinear:
    """Compute x Wᵀ + b + s (x Aᵀ) Bᵀ: as a linear layer with the matrix W + s B A.

    Hu et al. 2021, arXiv:2106.09685. The twin of `tformer.LoRALinear` in `eval()`.

    Args:
        base: W (O, I) and b (O,).
        down: A (r, I).
        up: B (O, r).
        scale: s, an array without an axis.
        original: W before B A was added to it; None if it was not.

    Raises:
        ValueError: the adapter is merged: W has B A in it already.
    """

    base: Linear
    down: np.ndarray
    up: np.ndarray
    scale: np.ndarray
    original: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.original is not None:
            raise ValueError("module is merged: unmerge it first")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (..., I) to (..., O)."""
        small = x @ self.down.T  # (..., r)
        return self.base(x) + self.scale * (small @ self.up.T)  # (..., O)
