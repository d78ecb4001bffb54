"""Kimi Delta Attention: the delta rule, where each channel of a key has its own decay.

B batch · H heads · T new tokens · C tokens of a chunk · D d_model · Dk width of a key ·
Dv width of a value · R rank
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_sequences
from tformer.nn.convolution import ShortConvolution
from tformer.nn.delta_rule import unit_length
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.linear_attention import chunks, decay_matrix
from tformer.nn.norm import RMSNorm
from tformer.nn.state import StateCache, initial_rates, no_autocast, wide


def kda(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    chunk: int = 16,
) -> tuple[Tensor, Tensor]:
    """Compute what `delta_rule_recurrent` does with a decay of each channel, in chunks.

    Kimi Team 2025 (arXiv:2510.26692); `log_decay` is (B, H, T, Dk). As in `delta_rule`,
    but what is left between two tokens differs by channel, so that it cannot be taken
    out of their product: a chunk needs C · C · Dk numbers. Products of q ⊙ exp(g) and
    k ⊙ exp(−g) would need fewer, and can overflow where a channel decays fast.
    """
    check_positive(chunk=chunk)
    q, k, v, decay, S, rate = wide(
        query, key, value, log_decay, state, by_channel=True, beta=beta
    )
    outputs = []
    with no_autocast(query):
        for part in chunks(query.shape[2], chunk):
            queries, keys, lost = q[:, :, part], k[:, :, part], decay[:, :, part]
            left = decay_matrix(lost.mT)  # (B, H, Dk, C, C)
            total = lost.cumsum(-2).exp()  # (B, H, C, Dk): since the chunk began
            each = rate[:, :, part, None]  # (B, H, C, 1)
            among = each * products(keys, keys, left).tril(-1)  # (B, H, C, C)
            target = each * (v[:, :, part] - (total * keys) @ S)  # (B, H, C, Dv)
            u = torch.linalg.solve_triangular(  # (I + among) u = target
                among, target, upper=False, unitriangular=True
            )
            read = products(queries, keys, left) @ u + (total * queries) @ S
            outputs.append(read)  # (B, H, C, Dv)
            at_end = left[..., -1, :].mT  # (B, H, C, Dk): of what each token wrote
            S = total[:, :, -1, :, None] * S + (keys * at_end).mT @ u
    return torch.cat(outputs, dim=2).to(value.dtype), S


def products(a: Tensor, b: Tensor, left: Tensor) -> Tensor:
    """Sum aᵢ ⊙ bⱼ over the channels, each by what is left of it from j to i.

    Of a, b (B, H, C, Dk) and left (B, H, Dk, C, C) it makes (B, H, C, C).
    """
    return torch.einsum("bhic,bhjc,bhcij->bhij", a, b, left)


class KimiDeltaAttention(nn.Module):
    """Causal attention with a state, each row of which forgets at a speed of its own.

    Kimi Team 2025 (arXiv:2510.26692), section 4, as in Kimi Linear: a short convolution
    before queries, keys and values; α and the gate of the output come by way of R
    numbers: α = exp(−A · softplus(x W W′ + b)), and the normalised output is multiplied
    by σ(x U U′), where Qwen3-Next's gate is a SiLU.

    Args:
        d_model: width D of input and output.
        num_heads: heads H, each with a state.
        key_dim: width Dk of a query and a key; D / H if not given.
        value_dim: width Dv of a value; D / H if not given.
        rank: R, the width between the two matrices of α and of the gate; Dv if not
            given.
        kernel: K of the `ShortConvolution`.
        eps: in the norm of the output.
        chunk: how many tokens are computed at once.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        key_dim: int | None = None,
        value_dim: int | None = None,
        rank: int | None = None,
        kernel: int = 4,
        eps: float = 1e-6,
        chunk: int = 16,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_heads=num_heads, chunk=chunk)
        if key_dim is None or value_dim is None:
            check_divisible(d_model=d_model, num_heads=num_heads)
        key_dim = d_model // num_heads if key_dim is None else key_dim
        value_dim = d_model // num_heads if value_dim is None else value_dim
        rank = value_dim if rank is None else rank
        check_positive(key_dim=key_dim, value_dim=value_dim, rank=rank)
        self.d_model, self.num_heads, self.chunk = d_model, num_heads, chunk
        keys, values = num_heads * key_dim, num_heads * value_dim
        self.q_proj = nn.Linear(d_model, keys, bias=False)
        self.k_proj = nn.Linear(d_model, keys, bias=False)
        self.v_proj = nn.Linear(d_model, values, bias=False)
        self.out_proj = nn.Linear(values, d_model, bias=False)
        self.beta_proj = nn.Linear(d_model, num_heads, bias=False)
        self.decay_down = nn.Linear(d_model, rank, bias=False)
        self.decay_up = nn.Linear(rank, keys, bias=False)
        self.gate_down = nn.Linear(d_model, rank, bias=False)
        self.gate_up = nn.Linear(rank, values, bias=False)
        self.log_rate, self.step_bias = initial_rates(num_heads, keys)
        self.convolution = ShortConvolution(2 * keys + values, kernel)
        self.norm = RMSNorm(value_dim, eps)

    def forward(
        self, x: Tensor, *, is_causal: bool = True, cache: StateCache | None = None
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); with a cache, x is what is new."""
        del is_causal  # it sees the past only, whatever is asked
        check_sequences(self.d_model, x=x)
        cache = StateCache() if cache is None else cache
        each = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, T, …)
        mixed, cache.past = self.convolution(torch.cat(each, dim=-1), cache.past)
        each = mixed.split([y.shape[-1] for y in each], dim=-1)
        q, k, v = (split_heads(y, self.num_heads) for y in each)  # (B, H, T, …)
        q = unit_length(q) / math.sqrt(q.shape[-1])  # (B, H, T, Dk)
        beta = torch.sigmoid(self.beta_proj(x)).mT  # (B, H, T)
        # In 16 bits a decay near 1 would be rounded to 1, or to the number before it.
        dtype = torch.promote_types(x.dtype, torch.float32)
        step = F.softplus(self.decay_up(self.decay_down(x)).to(dtype) + self.step_bias)
        rate = self.log_rate.to(dtype).exp()[:, None, None]  # (H, 1, 1)
        log_decay = -rate * split_heads(step, self.num_heads)  # (B, H, T, Dk)
        output, cache.state = kda(
            q,
            unit_length(k),
            v,
            beta,
            log_decay=log_decay,
            state=cache.state,
            chunk=self.chunk,
        )
        cache.length += x.shape[1]
        gate = torch.sigmoid(self.gate_up(self.gate_down(x)))  # (B, T, H · Dv)
        return self.out_proj(merge_heads(self.norm(output)) * gate)  # (B, T, D)

    def new_cache(self, max_len: int) -> StateCache:
        """Make an empty cache; its size does not depend on `max_len`."""
        check_positive(max_len=max_len)
        return StateCache()
