"""Multi-head attention in NumPy: attentions side by side, each in its own projection.

B batch · T queries · S keys · D d_model · H heads · G key/value heads ·
Dh head_dim
"""

import numpy as np

from tformer.checks import check_divisible
from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.linear import Linear
from tformer.reference.weights import Weights, parts


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

    Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762). The twin of
    `tformer.MultiHeadAttention`, as it computes in `eval()`.

    Args:
        weights: "q_proj.weight" (D, D), "k_proj.weight" (G · Dh, D), "v_proj.weight"
            (G · Dh, D), "out_proj.weight" (D, D) and, or not, their biases.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads G; divides H. H if not given.

    Raises:
        ValueError: a name is wrong, H does not divide D, or G does not divide H.
    """

    def __init__(
        self, weights: Weights, num_heads: int, *, num_kv_heads: int | None = None
    ) -> None:
        of = parts(weights, "q_proj", "k_proj", "v_proj", "out_proj")
        self.q_proj = Linear(of["q_proj"])
        self.k_proj = Linear(of["k_proj"])
        self.v_proj = Linear(of["v_proj"])
        self.out_proj = Linear(of["out_proj"])
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_divisible(d_model=len(self.q_proj.weight), num_heads=num_heads)
        check_divisible(num_heads=num_heads, num_kv_heads=self.num_kv_heads)
        # `record_weights` puts another function in its place, which keeps the weights.
        self.attend = scaled_dot_product_attention

    def __call__(
        self,
        query: np.ndarray,
        key: np.ndarray | None = None,
        value: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        *,
        bias: np.ndarray | None = None,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Attend from `query` to `key`; to itself if no key is given.

        Args:
            query: (B, T, D).
            key: (B, S, D); `query` if not given (self-attention).
            value: (B, S, D); `key` if not given.
            attn_mask: bool, True = may attend: (T, S), a row for each query, or with
                four axes and broadcastable to (B, H, T, S), as from `length_mask`.
            bias: float, of such a shape, added to the scores.
            is_causal: hide later keys; the last query lines up with the last key.

        Returns:
            (B, T, D). `record_weights` keeps the weights.

        Raises:
            TypeError: the mask is not boolean, or the bias not floating.
            ValueError: shapes do not match, or `value` comes without `key`.
        """
        if key is None and value is not None:
            raise ValueError("value is given without key")
        key = query if key is None else key
        value = key if value is None else value

        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, Dh)
        k = split_heads(self.k_proj(key), self.num_kv_heads)  # (B, G, S, Dh)
        v = split_heads(self.v_proj(value), self.num_kv_heads)  # (B, G, S, Dh)
        heads = self.attend(
            q, k, v, attn_mask, bias=bias, is_causal=is_causal
        )  # (B, H, T, Dh)
        return self.out_proj(merge_heads(heads))  # (B, T, D)
