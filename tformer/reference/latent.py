"""Multi-head latent attention in NumPy: keys and values are made of a short vector.

B batch · T tokens · D d_model · H heads · R kv_rank · Dh head_dim · Dr rotary_dim ·
Dv value_dim
"""

from typing import Any

import numpy as np

from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.rms_norm import RMSNorm
from tformer.reference.rotary import RotaryEmbedding
from tformer.reference.weights import Weights, parts


class LatentAttention:
    """Attend to keys and values that are made of a short vector, the latent.

    The twin of `tformer.LatentAttention`, as it computes in `eval()`, of whole texts.

    Args:
        weights: "q_proj.weight" (H · (Dh + Dr), D or q_rank), "kv_down.weight"
            (R + Dr, D), "kv_norm.weight" (R,), "kv_up.weight" (H · (Dh + Dv), R),
            "out_proj.weight" (D, H · Dv) and, or not, "q_down.weight" (q_rank, D) with
            "q_norm.weight" (q_rank,).
        num_heads: heads H.
        rotary: turns the second part of queries and keys; its width is Dr.
        eps: in the norms.
        scale: factor of the scores; 1 / √(Dh + Dr) if not given, in both forms.
        absorbed: whether to attend to the latents themselves.

    Raises:
        ValueError: a name is wrong.
    """

    def __init__(
        self,
        weights: Weights,
        num_heads: int,
        rotary: RotaryEmbedding,
        *,
        eps: float = 1e-6,
        scale: float | None = None,
        absorbed: bool = False,
    ) -> None:
        names = ("q_proj", "kv_down", "kv_norm", "kv_up", "out_proj")
        of = parts(weights, *names, optional=("q_down", "q_norm"))
        self.q_down = self.q_norm = None
        if of["q_down"] or of["q_norm"]:
            self.q_down = Linear(of["q_down"])
            self.q_norm = RMSNorm(of["q_norm"], eps)
        self.q_proj = Linear(of["q_proj"])
        self.kv_down = Linear(of["kv_down"])
        self.kv_norm = RMSNorm(of["kv_norm"], eps)
        self.kv_up = Linear(of["kv_up"])
        self.out_proj = Linear(of["out_proj"])
        self.num_heads = num_heads
        self.rotary = rotary
        self.absorbed = absorbed
        self.kv_rank = self.kv_up.weight.shape[1]
        self.rotary_dim = 2 * len(rotary.frequencies)
        width = self.q_proj.weight.shape[0] // num_heads
        self.head_dim = width - self.rotary_dim
        self.scale = width**-0.5 if scale is None else scale
        # `record_weights` puts another function in its place, which keeps the weights.
        self.attend = scaled_dot_product_attention

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "LatentAttention":
        """Make the twin of tformer's module, of its weights."""
        return LatentAttention(
            weights,
            module.num_heads,
            RotaryEmbedding.from_torch(module.rotary, {}),
            eps=module.kv_norm.eps,
            scale=module.scale,
            absorbed=bool(module.absorbed),
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Attend from each position of x (B, T, D) to the past; returns (B, T, D)."""
        form = self.absorbed_form if self.absorbed else self.naive_form
        return self.out_proj(merge_heads(form(self.queries(x), self.to_keep(x))))

    def queries(self, x: np.ndarray) -> np.ndarray:
        """Make the queries of x (B, T, D): (B, H, T, Dh + Dr)."""
        if self.q_down is not None and self.q_norm is not None:
            x = self.q_norm(self.q_down(x))  # (B, T, q_rank)
        query = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh + Dr)
        plain, turned = query[..., : self.head_dim], query[..., self.head_dim :]
        return np.concatenate((plain, self.rotary(turned)), axis=-1)

    def to_keep(self, x: np.ndarray) -> np.ndarray:
        """Make of x (B, T, D) the latents and one turned key: (B, T, R + Dr)."""
        both = self.kv_down(x)
        latent, key = both[..., : self.kv_rank], both[..., self.kv_rank :]
        turned = self.rotary(key[:, None])[:, 0]  # (B, T, Dr)
        return np.concatenate((self.kv_norm(latent), turned), axis=-1)

    def naive_form(self, query: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Make a key and a value of each latent for each head: (B, H, T, Dv)."""
        latent, turned = kept[..., : self.kv_rank], kept[..., self.kv_rank :]
        both = split_heads(self.kv_up(latent), self.num_heads)  # (B, H, T, Dh + Dv)
        plain, value = both[..., : self.head_dim], both[..., self.head_dim :]
        turned = np.repeat(turned[:, None], self.num_heads, axis=1)  # (B, H, T, Dr)
        return self.attended(query, np.concatenate((plain, turned), axis=-1), value)

    def absorbed_form(self, query: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Attend to the latents themselves, with one head of keys: (B, H, T, Dv)."""
        by_head = self.kv_up.weight.reshape(self.num_heads, -1, self.kv_rank)
        to_key = by_head[:, : self.head_dim]  # (H, Dh, R)
        to_value = by_head[:, self.head_dim :]  # (H, Dv, R)
        plain, turned = query[..., : self.head_dim], query[..., self.head_dim :]
        query = np.concatenate((plain @ to_key, turned), axis=-1)  # (B, H, T, R + Dr)
        key = kept[:, None]  # (B, 1, T, R + Dr)
        mixed = self.attended(query, key, key[..., : self.kv_rank])  # (B, H, T, R)
        return mixed @ to_value.swapaxes(1, 2)

    def attended(
        self, query: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        """Attend with this scale; the past only."""
        return self.attend(query, key, value, is_causal=True, scale=self.scale)
