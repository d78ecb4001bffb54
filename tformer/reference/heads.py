"""Multi-head attention in NumPy: attentions side by side, each in its own projection.

B batch · T queries · S keys · D d_model · H heads · G key/value heads
Dh head_dim
"""

from typing import Any

import numpy as np

from tformer.checks import check_divisible, check_positive
from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.checks import check_sequence
from tformer.reference.linear import Linear
from tformer.reference.masks import check_key_mask, combine_masks
from tformer.reference.weights import Weights, check_shape, parts


def split_heads(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Cut the width into heads: (B, T, H · Dh) to (B, H, T, Dh)."""
    B, T, D = x.shape
    return x.reshape(B, T, num_heads, D // num_heads).swapaxes(1, 2)  # (B, H, T, Dh)


def merge_heads(x: np.ndarray) -> np.ndarray:
    """Put the heads side by side again: (B, H, T, Dh) to (B, T, H · Dh)."""
    B, H, T, Dh = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * Dh)  # (B, T, D)


class MultiHeadAttention:
    """Attend with H heads: Concat(head₁, …) W^O, headᵢ = Attention(Q Wᵢ^Q, …).

    The twin of `tformer.MultiHeadAttention`, as it computes in `eval()`.

    Args:
        weights: "q_proj.weight" (D, D), "k_proj.weight" (G · Dh, D), "v_proj.weight"
            (G · Dh, D), "out_proj.weight" (D, D) and, or not, their biases.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads G; divides H. H if not given.

    Raises:
        ValueError: a name or a shape is wrong, H does not divide D, G does not divide
            H, or a size is below 1.
    """

    def __init__(
        self,
        weights: Weights,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
    ) -> None:
        of = parts(weights, "q_proj", "k_proj", "v_proj", "out_proj")
        self.q_proj = Linear(of["q_proj"])
        self.k_proj = Linear(of["k_proj"])
        self.v_proj = Linear(of["v_proj"])
        self.out_proj = Linear(of["out_proj"])
        self.d_model = len(self.q_proj.weight)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self._check()

    def _check(self) -> None:
        D, H, G = self.d_model, self.num_heads, self.num_kv_heads
        check_positive(num_heads=H, num_kv_heads=G)
        check_divisible(d_model=D, num_heads=H)
        check_divisible(num_heads=H, num_kv_heads=G)
        kv_width = G * (D // H)
        check_shape("q_proj.weight", self.q_proj.weight, (D, D))
        check_shape("k_proj.weight", self.k_proj.weight, (kv_width, D))
        check_shape("v_proj.weight", self.v_proj.weight, (kv_width, D))
        check_shape("out_proj.weight", self.out_proj.weight, (D, D))

    def __call__(
        self,
        query: np.ndarray,
        key: np.ndarray | None = None,
        value: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        *,
        key_mask: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Attend from `query` to `key`; to itself if no key is given.

        Args:
            query: (B, T, D).
            key: (B, S, D); `query` if not given (self-attention).
            value: (B, S, D); `key` if not given.
            attn_mask: bool, broadcastable to (B, H, T, S), True = may attend.
            key_mask: bool (B, S), True = a real token, False = padding.
            bias: float, broadcastable to (B, H, T, S), added to the scores.
            is_causal: hide later keys; the last query lines up with the last key.
            return_weights: also return the weights of every head.

        Returns:
            (B, T, D), or with `return_weights` a pair of it and (B, H, T, S).

        Raises:
            TypeError: a mask is not boolean, the bias not floating, or one of them or
                of the sequences not an array.
            ValueError: shapes do not match, a sequence is empty, or `value` comes
                without `key`.
        """
        if key is None and value is not None:
            raise ValueError("value is given without key")
        key = query if key is None else key
        value = key if value is None else value
        check_sequence(self.d_model, query=query, key=key, value=value)
        if key_mask is not None:
            key_mask = check_key_mask(key_mask, *key.shape[:2])  # (B, 1, 1, S)

        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, Dh)
        k = split_heads(self.k_proj(key), self.num_kv_heads)  # (B, G, S, Dh)
        v = split_heads(self.v_proj(value), self.num_kv_heads)  # (B, G, S, Dh)
        heads, weights = scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask if key_mask is None else combine_masks(attn_mask, key_mask),
            bias=bias,
            is_causal=is_causal,
            return_weights=True,
        )
        output = self.out_proj(merge_heads(heads))  # (B, T, D)
        return (output, weights) if return_weights else output
