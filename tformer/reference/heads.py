"""Multi-head attention in NumPy: attentions side by side, each in its own projection.

B batch · T queries · S keys · D d_model · H heads · G key/value heads ·
Dh head_dim
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.checks import check_divisible
from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.feed_forward import sigmoid
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]
KeysValues = tuple[np.ndarray, np.ndarray]  # each (B, G, S, Dh)


def split_heads(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Cut the width into heads: (B, T, H · Dh) to (B, H, T, Dh)."""
    B, T, D = x.shape
    check_divisible(width=D, num_heads=num_heads)
    return x.reshape(B, T, num_heads, D // num_heads).swapaxes(1, 2)  # (B, H, T, Dh)


def merge_heads(x: np.ndarray) -> np.ndarray:
    """Put the heads side by side again: (B, H, T, Dh) to (B, T, H · Dh)."""
    B, H, T, Dh = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * Dh)  # (B, T, D)


@dataclass(eq=False)
class MultiHeadAttention:
    """Attend with H heads: Concat(head₁, …) W^O, headᵢ = Attention(Q Wᵢ^Q, …).

    Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762).
    """

    q_proj: Linear  # from D to H · Dh
    k_proj: Linear  # from D to G · Dh
    v_proj: Linear  # from D to G · Dh
    out_proj: Linear  # from H · Dh to D
    num_heads: int  # heads H
    num_kv_heads: int | None = None  # G, which divides H; H if not given
    q_norm: Map | None = None  # of each query (Dh,)
    k_norm: Map | None = None  # of each key
    rotary: Map | None = None  # rotates queries and keys (B, H, T, Dh)
    temperature: Map | None = None  # scales queries by their position
    relative: Callable[[int, int], np.ndarray] | None = None  # T, S to a bias
    gate: Map | None = None  # W^G, from D to H · Dh, or H: heads · sigmoid(x W^G)
    sinks: np.ndarray | None = None  # (H,); as in `attention_weights`
    window: int | None = None
    scale: float | None = None
    softcap: float | None = None

    # `record_weights` puts another function in its place, which keeps the weights.
    attend = staticmethod(scaled_dot_product_attention)

    def __call__(
        self,
        query: np.ndarray,
        key: np.ndarray | None = None,
        value: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
        keys_values: KeysValues | None = None,
        keep: list[KeysValues] | None = None,
    ) -> np.ndarray:
        """Attend from query (B, T, D) to key and value (B, S, D); returns (B, T, D).

        The key is the query if not given (self-attention), the value the key. The mask
        is boolean, True = may attend: (T, S), or four axes, as from `length_mask`.
        `keys_values`, of another layer, are attended to in place of keys and values of
        `key`; `keep` gets those that were.
        """
        if key is None and value is not None:
            raise ValueError("value is given without key")
        key = query if key is None else key
        value = key if value is None else value

        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, Dh)
        q = self.place(q, self.q_norm)
        if keys_values is None:
            keys_values = self.project(key, value)
        if keep is not None:
            keep.append(keys_values)
        k, v = keys_values  # (B, G, S, Dh)
        q = q if self.temperature is None else self.temperature(q)
        T, S = q.shape[2], k.shape[2]
        bias = None if self.relative is None else self.relative(T, S)  # (1, H, T, S)
        heads = self.attend(
            q,
            k,
            v,
            attn_mask,
            bias=bias,
            is_causal=is_causal,
            sinks=self.sinks,
            window=self.window,
            scale=self.scale,
            softcap=self.softcap,
        )  # (B, H, T, Dh)
        if self.gate is not None:
            gate = split_heads(self.gate(query), self.num_heads)  # (B, H, T, Dh or 1)
            heads = heads * sigmoid(gate)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def project(self, key: np.ndarray, value: np.ndarray) -> KeysValues:
        """Make keys and values (B, G, S, Dh) of `key` and `value`, both (B, S, D)."""
        G = self.num_kv_heads or self.num_heads
        k = split_heads(self.k_proj(key), G)  # (B, G, S, Dh)
        k = self.place(k, self.k_norm)
        return k, split_heads(self.v_proj(value), G)

    def place(self, x: np.ndarray, norm: Map | None) -> np.ndarray:
        """Normalise queries or keys (B, H, T, Dh), and rotate them."""
        x = x if norm is None else norm(x)
        return x if self.rotary is None else self.rotary(x)
