"""Mamba-2: a state space model, which is linear attention with a decay.

B batch · H heads · G groups that share B and C · T new tokens · D d_model · N size of a
state · P width of a head
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_sequences
from tformer.nn.convolution import ShortConvolution
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.linear_attention import linear_attention
from tformer.nn.norm import RMSNorm
from tformer.nn.state import StateCache, initial_rates, no_autocast, wide


def state_space_recurrent(
    x: Tensor,
    step: Tensor,
    rate: Tensor,
    into: Tensor,
    out_of: Tensor,
    *,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Advance a state space: h ← exp(−Δ a) h + Δ B xᵀ, then y = hᵀ C.

    Dao and Gu 2024, equations 1 and 2 (arXiv:2405.21060), where A = −a is one number
    for a head, and Δ the step from one token to the next.

    Args:
        x: (B, H, T, P).
        step: Δ, (B, H, T), at least 0.
        rate: a, (H,), above 0.
        into: B of each token, (B, H, T, N): where in the state x is written.
        out_of: C of each token, (B, H, T, N): what is read from it.
        state: h after the tokens before these, (B, H, N, P); zeros if not given.

    Returns:
        y (B, H, T, P) in the dtype of x, and h (B, H, N, P), in float32 at least.
    """
    C, B, xs, decay, h, steps = wide(
        out_of, into, x, -step * rate[:, None], state, step=step
    )
    outputs = []
    with no_autocast(x):
        for t in range(x.shape[2]):
            delta = steps[:, :, t, None, None]  # (B, H, 1, 1)
            written = delta * B[:, :, t, :, None] * xs[:, :, t, None, :]
            h = decay[:, :, t, None, None].exp() * h + written  # (B, H, N, P)
            outputs.append(C[:, :, t : t + 1] @ h)  # (B, H, 1, P)
    return torch.cat(outputs, dim=2).to(x.dtype), h


def state_space(
    x: Tensor,
    step: Tensor,
    rate: Tensor,
    into: Tensor,
    out_of: Tensor,
    *,
    state: Tensor | None = None,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """Compute what `state_space_recurrent` does, as linear attention in chunks.

    This is the duality of the paper's title: C is the query, B the key, Δ x the value,
    and exp(−Δ a) the decay.
    """
    value = step[..., None] * x  # (B, H, T, P)
    decay = -step * rate[:, None]  # (B, H, T)
    y, state = linear_attention(
        out_of, into, value, log_decay=decay, state=state, chunk=chunk
    )
    return y.to(x.dtype), state


class Mamba2(nn.Module):
    """The mixer of Mamba-2, in the place where attention stands.

    Dao and Gu 2024 (arXiv:2405.21060), section 7: x, B and C come through one short
    convolution; Δ = softplus(x W + b); each head adds its own `skip` times x, and the
    gated output is normalised: norm(y ⊙ silu(z)).

    Args:
        d_model: width D of input and output.
        num_heads: heads H, each with a state.
        head_dim: P, the width of a head; 2 D / H if not given, as in the paper.
        state_dim: N, how many rows a state has.
        groups: G, which divides H: so many B and C, each shared by H / G heads; the
            norm is taken within a group.
        kernel: K of the `ShortConvolution`.
        bias: give the projections of input and output a bias.
        convolution_bias: give the convolution one.
        eps: in the norm of the output.
        chunk: how many tokens are computed at once.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        head_dim: int | None = None,
        state_dim: int = 128,
        groups: int = 1,
        kernel: int = 4,
        bias: bool = False,
        convolution_bias: bool = True,
        eps: float = 1e-5,
        chunk: int = 64,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_heads=num_heads, chunk=chunk)
        check_positive(state_dim=state_dim, groups=groups)
        check_divisible(num_heads=num_heads, groups=groups)
        if head_dim is None:
            check_divisible(d_model=d_model, num_heads=num_heads)
            head_dim = 2 * d_model // num_heads
        check_positive(head_dim=head_dim)
        self.d_model, self.num_heads, self.groups = d_model, num_heads, groups
        self.chunk = chunk
        inner, shared = num_heads * head_dim, groups * state_dim
        self.x_proj = nn.Linear(d_model, inner, bias=bias)
        self.b_proj = nn.Linear(d_model, shared, bias=bias)
        self.c_proj = nn.Linear(d_model, shared, bias=bias)
        self.step_proj = nn.Linear(d_model, num_heads, bias=bias)
        self.gate_proj = nn.Linear(d_model, inner, bias=bias)
        self.out_proj = nn.Linear(inner, d_model, bias=bias)
        self.log_rate, self.step_bias = initial_rates(num_heads, num_heads)
        self.skip = nn.Parameter(torch.ones(num_heads))
        self.convolution = ShortConvolution(
            inner + 2 * shared, kernel, bias=convolution_bias
        )
        self.norm = RMSNorm(inner // groups, eps, learned=False)
        self.gain = nn.Parameter(torch.ones(inner))

    def forward(
        self, x: Tensor, *, is_causal: bool = True, cache: StateCache | None = None
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); with a cache, x is what is new."""
        del is_causal  # it sees the past only, whatever is asked
        check_sequences(self.d_model, x=x)
        cache = StateCache() if cache is None else cache
        each = self.x_proj(x), self.b_proj(x), self.c_proj(x)  # (B, T, …)
        mixed, cache.past = self.convolution(torch.cat(each, dim=-1), cache.past)
        each = mixed.split([y.shape[-1] for y in each], dim=-1)
        values = split_heads(each[0], self.num_heads)  # (B, H, T, P)
        into, out_of = (
            split_heads(y, self.groups).repeat_interleave(
                self.num_heads // self.groups, dim=1
            )
            for y in each[1:]
        )  # (B, H, T, N)
        # In 16 bits a decay near 1 would be rounded to 1, or to the number before it.
        dtype = torch.promote_types(x.dtype, torch.float32)
        step = F.softplus(self.step_proj(x).to(dtype) + self.step_bias).mT  # (B, H, T)
        y, cache.state = state_space(
            values,
            step,
            self.log_rate.to(dtype).exp(),
            into,
            out_of,
            state=cache.state,
            chunk=self.chunk,
        )
        cache.length += x.shape[1]
        y = merge_heads(y + self.skip.to(y.dtype)[:, None, None] * values)
        y = y * F.silu(self.gate_proj(x))  # (B, T, H · P): gated before the norm
        y = self.norm(y.view(*y.shape[:2], self.groups, -1)).flatten(-2)
        return self.out_proj(y * self.gain.to(y.dtype))  # (B, T, D)

    def new_cache(self, max_len: int) -> StateCache:
        """Make an empty cache; its size does not depend on `max_len`."""
        check_positive(max_len=max_len)
        return StateCache()
