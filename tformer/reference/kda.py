"""Kimi Delta Attention in NumPy: each channel of a key decays at its own speed.

B batch · H heads · T new tokens · D d_model · Dk width of a key · Dv width of a value
"""

import math
from dataclasses import dataclass

import numpy as np

from tformer.reference.convolution import ShortConvolution
from tformer.reference.delta_rule import delta_rule_recurrent, unit_length
from tformer.reference.feed_forward import sigmoid
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.masks import check_causal
from tformer.reference.norm import RMSNorm


@dataclass(eq=False)
class KimiDeltaAttention:
    """Causal attention with a state whose rows decay each at a speed of their own."""

    q_proj: Linear  # from D to H · Dk
    k_proj: Linear  # the same
    v_proj: Linear  # from D to H · Dv
    out_proj: Linear  # back to D
    beta_proj: Linear  # from D to H
    decay_down: Linear  # from D to R, the rank
    decay_up: Linear  # from these to H · Dk
    gate_down: Linear  # from D to R, the rank
    gate_up: Linear  # from these to H · Dv
    log_rate: np.ndarray  # (H,)
    step_bias: np.ndarray  # (H · Dk,)
    convolution: ShortConvolution  # of queries, keys and values
    norm: RMSNorm  # of each head (Dv,)
    num_heads: int  # H

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
        mixed, _ = self.convolution(np.concatenate(each, axis=-1))
        ends = np.cumsum([y.shape[-1] for y in each])
        each = np.split(mixed, ends[:-1], axis=-1)
        q, k, v = (split_heads(y, self.num_heads) for y in each)  # (B, H, T, …)
        q = unit_length(q) / math.sqrt(q.shape[-1])
        beta = sigmoid(self.beta_proj(x)).swapaxes(1, 2)  # (B, H, T)
        step = np.logaddexp(0, self.decay_up(self.decay_down(x)) + self.step_bias)
        rate = np.exp(self.log_rate)[:, None, None]  # (H, 1, 1)
        log_decay = -rate * split_heads(step, self.num_heads)  # (B, H, T, Dk)
        output, _ = delta_rule_recurrent(
            q, unit_length(k), v, beta, log_decay=log_decay
        )
        gate = sigmoid(self.gate_up(self.gate_down(x)))  # (B, T, H · Dv)
        return self.out_proj(merge_heads(self.norm(output)) * gate)
