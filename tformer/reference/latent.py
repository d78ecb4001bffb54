"""Multi-head latent attention in NumPy: keys and values are made of a short vector.

B batch · T tokens · D d_model · H heads · R kv_rank · Dh head_dim · Dr rotary_dim ·
Dv value_dim
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.masks import check_causal
from tformer.reference.norm import RMSNorm
from tformer.reference.rotary import RotaryEmbedding


@dataclass(eq=False)
class LatentAttention:
    """Attend to keys and values that are made of a short vector, the latent."""

    q_proj: Linear  # from D, or q_rank, to H · (Dh + Dr)
    kv_down: Linear  # from D to R + Dr
    kv_norm: RMSNorm  # (R,)
    kv_up: Linear  # from R to H · (Dh + Dv)
    out_proj: Linear  # from H · Dv to D
    num_heads: int  # heads H
    rotary: RotaryEmbedding | None  # of the second part, of width Dr
    scale: float  # of the scores, in both forms
    q_down: Linear | None = None  # from D to q_rank
    q_norm: RMSNorm | None = None  # (q_rank,)
    absorbed: bool | None = False  # attend to the latents themselves
    rotary_dim: int = 0  # Dr, where nothing is rotated

    # `record_weights` puts another function in its place, which keeps the weights.
    attend = staticmethod(scaled_dot_product_attention)

    def __post_init__(self) -> None:
        self.kv_rank = self.kv_up.weight.shape[1]
        width = len(self.q_proj.weight) // self.num_heads
        if self.rotary is not None:
            self.rotary_dim = 2 * len(self.rotary.frequencies)
        self.head_dim = width - self.rotary_dim

    def __call__(
        self,
        x: np.ndarray,
        *,
        attn_mask: np.ndarray | None = None,
        is_causal: bool = True,
    ) -> np.ndarray:
        """Attend from each position of x (B, T, D) to the past; returns (B, T, D)."""
        check_causal(attn_mask, is_causal)
        form = self.absorbed_form if self.absorbed else self.naive_form
        return self.out_proj(merge_heads(form(self.queries(x), self.to_keep(x))))

    def queries(self, x: np.ndarray) -> np.ndarray:
        """Make the queries of x (B, T, D): (B, H, T, Dh + Dr)."""
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))  # (B, T, q_rank)
        query = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh + Dr)
        plain, rotated = query[..., : self.head_dim], query[..., self.head_dim :]
        return np.concatenate((plain, self.rotate(rotated)), axis=-1)

    def to_keep(self, x: np.ndarray) -> np.ndarray:
        """Make of x (B, T, D) the latents and one rotated key: (B, T, R + Dr)."""
        both = self.kv_down(x)
        latent, key = both[..., : self.kv_rank], both[..., self.kv_rank :]
        rotated = self.rotate(key[:, None])[:, 0]  # (B, T, Dr)
        return np.concatenate((self.kv_norm(latent), rotated), axis=-1)

    def rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotate x (…, T, Dr) by its positions, if anything is rotated."""
        return x if self.rotary is None else self.rotary(x)

    def naive_form(self, query: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Make a key and a value of each latent for each head: (B, H, T, Dv)."""
        latent, rotated = kept[..., : self.kv_rank], kept[..., self.kv_rank :]
        both = split_heads(self.kv_up(latent), self.num_heads)  # (B, H, T, Dh + Dv)
        plain, value = both[..., : self.head_dim], both[..., self.head_dim :]
        rotated = np.repeat(rotated[:, None], self.num_heads, axis=1)  # (B, H, T, Dr)
        return self.attended(query, np.concatenate((plain, rotated), axis=-1), value)

    def absorbed_form(self, query: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Attend to the latents themselves, with one head of keys: (B, H, T, Dv)."""
        by_head = self.kv_up.weight.reshape(self.num_heads, -1, self.kv_rank)
        to_key = by_head[:, : self.head_dim]  # (H, Dh, R)
        to_value = by_head[:, self.head_dim :]  # (H, Dv, R)
        plain, rotated = query[..., : self.head_dim], query[..., self.head_dim :]
        query = np.concatenate((plain @ to_key, rotated), axis=-1)  # (B, H, T, R + Dr)
        key = kept[:, None]  # (B, 1, T, R + Dr)
        mixed = self.attended(query, key, key[..., : self.kv_rank])  # (B, H, T, R)
        return mixed @ to_value.swapaxes(1, 2)

    def attended(
        self, query: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        """Attend with this scale; the past only."""
        return self.attend(query, key, value, is_causal=True, scale=self.scale)
