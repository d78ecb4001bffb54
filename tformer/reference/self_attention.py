"""Causal self-attention with parts in NumPy: what language models have today.

B batch · T tokens · D d_model · H heads · G key/value heads · Dh head_dim
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from tformer.checks import check_divisible
from tformer.reference.attention import scaled_dot_product_attention
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.masks import sliding_window_mask
from tformer.reference.weights import Weights, parts

Norm = Callable[[np.ndarray], np.ndarray]


class SelfAttention:
    """Attend to the tokens so far, with norms, turning, bias, window, sinks, softcap.

    The twin of `tformer.SelfAttention`, as it computes in `eval()`, of whole texts.

    Args:
        weights: "q_proj.weight" (H · Dh, D), "k_proj.weight" (G · Dh, D),
            "v_proj.weight" (G · Dh, D), "out_proj.weight" (D, H · Dh) and, or not,
            their biases.
        num_heads: heads H.
        num_kv_heads: key/value heads G; divides H. H if not given.
        rotary: turns queries and keys (B, H, T, Dh).
        relative: makes from T and S what is added to the scores.
        qk_norm: the norm of queries and the norm of keys.
        window: how many keys a query sees, itself included.
        sinks: (H,), a logit for each head, which joins the softmax.
        softcap: bounds each score: c · tanh(score / c).
        scale: factor of the scores; 1 / √Dh if not given.

    Raises:
        ValueError: a name is wrong, or G does not divide H.
    """

    def __init__(
        self,
        weights: Weights,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        rotary: Callable[[np.ndarray], np.ndarray] | None = None,
        relative: Callable[[int, int], np.ndarray] | None = None,
        qk_norm: tuple[Norm, Norm] | None = None,
        window: int | None = None,
        sinks: np.ndarray | None = None,
        softcap: float | None = None,
        scale: float | None = None,
    ) -> None:
        of = parts(weights, "q_proj", "k_proj", "v_proj", "out_proj")
        self.q_proj = Linear(of["q_proj"])
        self.k_proj = Linear(of["k_proj"])
        self.v_proj = Linear(of["v_proj"])
        self.out_proj = Linear(of["out_proj"])
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_divisible(num_heads=num_heads, num_kv_heads=self.num_kv_heads)
        self.rotary = rotary
        self.relative = relative
        self.qk_norm = qk_norm
        self.window = window
        self.sinks = sinks
        self.softcap = softcap
        self.scale = scale
        # `record_weights` puts another function in its place, which keeps the weights.
        self.attend = scaled_dot_product_attention

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "SelfAttention":
        """Make the twin of tformer's module, of its weights and of its parts."""
        from_torch = import_module("tformer.reference.interop").from_torch

        qk_norm = None
        if module.q_norm is not None:
            qk_norm = from_torch(module.q_norm), from_torch(module.k_norm)
        projections = ("q_proj", "k_proj", "v_proj", "out_proj")
        return SelfAttention(
            {n: w for n, w in weights.items() if n.startswith(projections)},
            module.num_heads,
            num_kv_heads=module.num_kv_heads,
            rotary=None if module.rotary is None else from_torch(module.rotary),
            relative=None if module.relative is None else from_torch(module.relative),
            qk_norm=qk_norm,
            window=module.window,
            sinks=weights.get("sinks"),
            softcap=module.softcap,
            scale=module.scale,
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Attend from each position of x (B, T, D) to it and those before: (B, T, D).

        `record_weights` keeps the weights; with sinks their first column is the sink's.
        """
        q = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh)
        k = split_heads(self.k_proj(x), self.num_kv_heads)  # (B, G, T, Dh)
        v = split_heads(self.v_proj(x), self.num_kv_heads)  # (B, G, T, Dh)
        if self.qk_norm is not None:
            q, k = self.qk_norm[0](q), self.qk_norm[1](k)
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)

        T = x.shape[1]
        bias = None if self.relative is None else self.relative(T, T)
        mask = None
        if self.window is not None and self.window < T:
            mask = sliding_window_mask(T, self.window)  # (T, T)
        if self.sinks is not None:
            k, v, mask, bias = with_sinks(self.sinks, k, v, mask, bias)
        heads = self.attend(
            q,
            k,
            v,
            mask,
            bias=bias,
            is_causal=True,
            scale=self.scale,
            softcap=self.softcap,
        )  # (B, H, T, Dh)
        return self.out_proj(merge_heads(heads))  # (B, T, D)


def with_sinks(
    sinks: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None,
    bias: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Put a sink before all keys: a key and a value of zeros, and a bias.

    Args:
        sinks: (H,), a logit for each head.
        key: (B, G, S, Dh).
        value: (B, G, S, Dh).
        mask: bool (T, S), or None.
        bias: (T, S) or (..., H or 1, T, S), or None.

    Returns:
        keys and values (B, G, 1 + S, Dh), the mask (T, 1 + S) or None, and the bias,
        with four axes and 1 + S columns.
    """
    S = key.shape[2]
    bias = np.zeros((1, S), sinks.dtype) if bias is None else bias
    bias = bias[(None,) * (4 - bias.ndim)]
    column = sinks[None, :, None, None]  # (1, H, 1, 1)
    rows = bias.shape[0], len(sinks), bias.shape[2]
    both = np.broadcast_to(column, (*rows, 1)), np.broadcast_to(bias, (*rows, S))
    before = (0, 0), (0, 0), (1, 0), (0, 0)
    if mask is not None:
        mask = np.pad(mask, ((0, 0), (1, 0)), constant_values=True)
    return np.pad(key, before), np.pad(value, before), mask, np.concatenate(both, -1)
