"""Token embedding in NumPy: from ids to vectors, and back to logits.

B batch · T length · D d_model · V vocabulary
"""

import math
from dataclasses import dataclass

import numpy as np

from tformer.reference.linear import linear


@dataclass(eq=False)
class TokenEmbedding:
    """Look up a vector for each token, times √D; its transpose makes logits.

    Vaswani et al. 2017, section 3.4.
    """

    weight: np.ndarray  # (V, D)
    scale: bool | float = True  # by √D, as the paper; not GPT and BERT; by a number

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Look up ids, integer (B, T), each in [0, V); returns (B, T, D).

        NumPy would take booleans as a mask, and count negative ids from the end.
        """
        if ids.dtype.kind not in "iu":
            raise TypeError(f"ids must be integers, not {ids.dtype}")
        V, D = self.weight.shape
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= V:
            raise ValueError(
                f"ids must be in [0, vocab_size = {V}), "
                f"but they reach from {low} to {high}"
            )
        x = self.weight[ids]  # (B, T, D)
        if isinstance(self.scale, bool):
            return x * math.sqrt(D) if self.scale else x
        return x * x.dtype.type(self.scale)

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Score every token for x (B, T, D) by the same matrix; returns (B, T, V)."""
        return linear(x, self.weight)
