"""The gated delta rule in NumPy: a state that is corrected, token by token.

B batch · H heads · T new tokens · G heads of keys · D d_model · Dk width of a key ·
Dv width of a value
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.convolution import ShortConvolution
from tformer.reference.feed_forward import sigmoid, silu
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.linear_attention import decay_and_state
from tformer.reference.masks import check_causal
from tformer.reference.norm import RMSNorm

Map = Callable[[np.ndarray], np.ndarray]


def delta_rule_recurrent(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    beta: np.ndarray,
    *,
    log_decay: np.ndarray | None = None,
    state: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Correct a state token by token: S ← α S, S ← S + β k (v − Sᵀ k)ᵀ, then o = Sᵀ q.

    Each key has length 1; β (B, H, T) is how much of the error is corrected. log α is
    (B, H, T), or (B, H, T, Dk) of each channel of the keys: Kimi Delta Attention. All
    else is as in `linear_attention_recurrent`.
    """
    by_channel = log_decay is not None and log_decay.ndim == 4
    decay, S = decay_and_state(
        query, key, value, log_decay, state, by_channel=by_channel, beta=beta
    )
    decay = decay.reshape(*decay.shape[:3], -1)  # (B, H, T, Dk or 1)
    output = np.empty_like(value)
    for t in range(query.shape[2]):
        one = np.s_[:, :, t : t + 1]
        S = np.exp(decay[:, :, t, :, None]) * S  # (B, H, Dk, Dv)
        error = value[one] - key[one] @ S  # (B, H, 1, Dv)
        S = S + beta[:, :, t, None, None] * key[one].swapaxes(-2, -1) @ error
        output[one] = query[one] @ S
    return output, S


def unit_length(x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Divide the vectors of the last axis by their length: x / √(Σ x² + ε)."""
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + eps)


@dataclass(eq=False)
class GatedDeltaRule:
    """Causal attention with a state that decays and is corrected by the delta rule."""

    q_proj: Linear  # from D to G · Dk
    k_proj: Linear  # the same
    v_proj: Linear  # from D to H · Dv
    out_proj: Linear  # back to D
    beta_proj: Linear  # from D to H
    decay_proj: Linear  # from D to H
    log_rate: np.ndarray  # (H,)
    step_bias: np.ndarray  # (H,)
    norm: RMSNorm  # of each head (Dv,)
    num_heads: int  # H
    num_key_heads: int  # G, which divides H
    convolution: ShortConvolution | None = None  # of queries, keys and values
    gate: Map | None = None  # from D to H · Dv

    def __call__(
        self,
        x: np.ndarray,
        *,
        attn_mask: np.ndarray | None = None,
        is_causal: bool = True,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        check_causal(attn_mask, is_causal)
        each = [self.q_proj(x), self.k_proj(x), self.v_proj(x)]  # (B, T, …)
        if self.convolution is not None:
            mixed, _ = self.convolution(np.concatenate(each, axis=-1))
            ends = np.cumsum([y.shape[-1] for y in each])
            each = np.split(mixed, ends[:-1], axis=-1)
        q = unit_length(split_heads(each[0], self.num_key_heads))  # (B, G, T, Dk)
        k = unit_length(split_heads(each[1], self.num_key_heads))
        v = split_heads(each[2], self.num_heads)  # (B, H, T, Dv)
        shared_by = self.num_heads // self.num_key_heads
        q, k = (y.repeat(shared_by, axis=1) for y in (q, k))  # (B, H, T, Dk)
        q = q / math.sqrt(q.shape[-1])
        beta = sigmoid(self.beta_proj(x)).swapaxes(1, 2)  # (B, H, T)
        step = np.logaddexp(0, self.decay_proj(x) + self.step_bias)  # (B, T, H)
        log_decay = -(np.exp(self.log_rate) * step).swapaxes(1, 2)  # (B, H, T)
        output, _ = delta_rule_recurrent(q, k, v, beta, log_decay=log_decay)
        merged = merge_heads(self.norm(output))  # (B, T, H · Dv)
        if self.gate is not None:
            merged = merged * silu(self.gate(x))
        return self.out_proj(merged)  # (B, T, D)
