"""A norm of all heads of a query or a key together, in NumPy.

B batch · T length · H heads · Dh head_dim
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.heads import merge_heads, split_heads


@dataclass(eq=False)
class NormOverHeads:
    """Normalise the heads of a token as one vector: norm(Concat(head₁, …, head_H)).

    The norm of queries and keys of OLMo 2 (arXiv:2501.00656).
    """

    norm: Callable[[np.ndarray], np.ndarray]  # of the width H · Dh

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Normalise x (B, H, T, Dh); returns (B, H, T, Dh)."""
        whole = self.norm(merge_heads(x))  # (B, T, H · Dh)
        return split_heads(whole, x.shape[1])  # (B, H, T, Dh)
