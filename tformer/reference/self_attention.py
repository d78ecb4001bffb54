"""Causal self-attention of a language model in NumPy.

B batch · T tokens · D d_model
"""

import numpy as np

from tformer.reference.heads import MultiHeadAttention


class SelfAttention(MultiHeadAttention):
    """`MultiHeadAttention` to the tokens so far, as in `tformer.SelfAttention`."""

    def __call__(
        self,
        query: np.ndarray,
        key: np.ndarray | None = None,
        value: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        *,
        bias: np.ndarray | None = None,
        is_causal: bool = True,
    ) -> np.ndarray:
        """Attend from each position of x (B, T, D) to the past: (B, T, D)."""
        return super().__call__(
            query, key, value, attn_mask, bias=bias, is_causal=is_causal
        )
