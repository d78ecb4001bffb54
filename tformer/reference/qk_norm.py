"""Norms of queries and keys: of all heads together, and after the rotation; in NumPy.

B batch · T length · H heads · Dh head_dim
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.heads import (
    Map,
    MultiHeadAttention,
    merge_heads,
    split_heads,
)


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


@dataclass(eq=False)
class LateNormAttention(MultiHeadAttention):
    """Multi-head attention that rotates queries and keys first: norm(R x)."""

    def place(self, x: np.ndarray, norm: Map | None) -> np.ndarray:
        """Rotate queries or keys (B, H, T, Dh), and normalise them."""
        x = x if self.rotary is None else self.rotary(x)
        return x if norm is None else norm(x)
