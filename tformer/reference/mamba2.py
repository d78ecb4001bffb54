"""Mamba-2 in NumPy: a state that decays, and what each token writes into it.

B batch · H heads · G groups that share B and C · T new tokens · D d_model · N size of a
state · P width of a head
"""

from dataclasses import dataclass

import numpy as np

from tformer.reference.convolution import ShortConvolution
from tformer.reference.feed_forward import silu
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.linear_attention import decay_and_state
from tformer.reference.masks import check_causal
from tformer.reference.norm import RMSNorm


def state_space_recurrent(
    x: np.ndarray,
    step: np.ndarray,
    rate: np.ndarray,
    into: np.ndarray,
    out_of: np.ndarray,
    *,
    state: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Advance a state space: h ← exp(−Δ a) h + Δ B xᵀ, then y = hᵀ C.

    x is (B, H, T, P), Δ (B, H, T), a (H,), B and C (B, H, T, N). Returns y, as x, and
    the new state h (B, H, N, P).
    """
    log_decay, h = decay_and_state(
        out_of, into, x, -step * rate[:, None], state, step=step
    )
    y = np.empty_like(x)
    for t in range(x.shape[2]):
        written = step[:, :, t, None, None] * into[:, :, t, :, None] * x[:, :, t, None]
        h = np.exp(log_decay[:, :, t, None, None]) * h + written  # (B, H, N, P)
        y[:, :, t : t + 1] = out_of[:, :, t : t + 1] @ h
    return y, h


@dataclass(eq=False)
class Mamba2:
    """The mixer of Mamba-2, in the place where attention stands."""

    x_proj: Linear  # from D to H · P
    b_proj: Linear  # from D to G · N
    c_proj: Linear  # the same
    step_proj: Linear  # from D to H
    gate_proj: Linear  # from D to H · P
    out_proj: Linear  # back to D
    log_rate: np.ndarray  # (H,)
    step_bias: np.ndarray  # (H,)
    skip: np.ndarray  # (H,)
    convolution: ShortConvolution  # of x, B and C
    norm: RMSNorm  # of each group, without a gain of its own
    gain: np.ndarray  # (H · P,)
    num_heads: int  # H
    groups: int  # G, which divides H

    def __call__(
        self,
        x: np.ndarray,
        *,
        attn_mask: np.ndarray | None = None,
        is_causal: bool = True,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        check_causal(attn_mask, is_causal)
        each = [self.x_proj(x), self.b_proj(x), self.c_proj(x)]  # (B, T, …)
        mixed, _ = self.convolution(np.concatenate(each, axis=-1))
        ends = np.cumsum([y.shape[-1] for y in each])
        each = np.split(mixed, ends[:-1], axis=-1)
        values = split_heads(each[0], self.num_heads)  # (B, H, T, P)
        shared_by = self.num_heads // self.groups
        into, out_of = (
            split_heads(y, self.groups).repeat(shared_by, axis=1) for y in each[1:]
        )  # (B, H, T, N)
        step = np.logaddexp(0, self.step_proj(x) + self.step_bias).swapaxes(1, 2)
        y, _ = state_space_recurrent(values, step, np.exp(self.log_rate), into, out_of)
        y = merge_heads(y + self.skip[:, None, None] * values)  # (B, T, H · P)
        gated = y * silu(self.gate_proj(x))
        grouped = gated.reshape(*gated.shape[:2], self.groups, -1)
        normalised = self.norm(grouped).reshape(gated.shape)
        return self.out_proj(normalised * self.gain)  # (B, T, D)
