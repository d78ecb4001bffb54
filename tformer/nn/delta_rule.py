"""The gated delta rule: a state that is corrected, where linear attention only adds.

B batch · H heads · G heads of keys · T new tokens · C tokens of a chunk · D d_model ·
Dk width of a key · Dv width of a value
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_sequences
from tformer.nn.convolution import ShortConvolution
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.linear_attention import attend_in_chunk, chunks, decay_matrix
from tformer.nn.norm import RMSNorm
from tformer.nn.state import StateCache, initial_rates, no_autocast, wide


def delta_rule_recurrent(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Correct a state token by token: S ← α S, S ← S + β k (v − Sᵀ k)ᵀ, then o = Sᵀ q.

    Yang et al. 2024, equation 10 (arXiv:2412.06464): in the paper's letters, which
    transpose the state, S ← α S (I − β k kᵀ) + β v kᵀ. This is the definition;
    `delta_rule` computes the same in chunks. Nothing is scaled here: queries and keys
    come as `unit_length` makes them, or the state may grow without bound.

    With a decay of each channel of the keys this is Kimi Delta Attention (Kimi Team
    2025, equation 1, arXiv:2510.26692), S ← (I − β k kᵀ) Diag(α) S + β k vᵀ; `kda`
    computes it in chunks.

    `beta` (B, H, T) is how much of the error is corrected, in [0, 1]; `log_decay` is
    (B, H, T), or (B, H, T, Dk) of each channel. All else, and what is returned, is as
    in `linear_attention_recurrent`.
    """
    by_channel = log_decay is not None and log_decay.ndim == 4
    q, k, v, decay, S, rate = wide(
        query, key, value, log_decay, state, by_channel=by_channel, beta=beta
    )
    decay = decay.reshape(*decay.shape[:3], -1)  # (B, H, T, Dk or 1)
    rate = rate[..., None, None]  # (B, H, T, 1, 1)
    outputs = []
    with no_autocast(query):
        for t in range(query.shape[2]):
            one = slice(t, t + 1)
            S = decay[:, :, t, :, None].exp() * S  # (B, H, Dk, Dv)
            error = v[:, :, one] - k[:, :, one] @ S  # (B, H, 1, Dv)
            S = S + rate[:, :, t] * k[:, :, one].mT @ error
            outputs.append(q[:, :, one] @ S)  # (B, H, 1, Dv)
    return torch.cat(outputs, dim=2).to(value.dtype), S


def delta_rule(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    beta: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """Compute what `delta_rule_recurrent` does, a chunk of tokens at a time.

    What a token writes depends on what those before it wrote: C equations, each of
    which needs only the earlier ones. One triangular system solves them all; then the
    chunk is linear attention with the corrected values (Yang et al. 2024, section 3.3).
    `chunk` is C, how many tokens are computed at once.
    """
    check_positive(chunk=chunk)
    q, k, v, decay, S, rate = wide(query, key, value, log_decay, state, beta=beta)
    rate = rate[..., None]  # (B, H, T, 1)
    outputs = []
    with no_autocast(query):
        for part in chunks(query.shape[2], chunk):
            keys, lost = k[:, :, part], decay[:, :, part]
            u = corrected_values(keys, v[:, :, part], rate[:, :, part], lost, S)
            output, S = attend_in_chunk(q[:, :, part], keys, u, lost, S)
            outputs.append(output)  # (B, H, C, Dv)
    return torch.cat(outputs, dim=2).to(value.dtype), S


def corrected_values(
    k: Tensor, v: Tensor, rate: Tensor, log_decay: Tensor, state: Tensor
) -> Tensor:
    """Solve uᵢ = βᵢ (vᵢ − what the state before i answers to kᵢ) for a chunk.

    That answer is of the state before the chunk, decayed, and of what the tokens j < i
    of the chunk wrote: Σⱼ decayᵢⱼ (kᵢ·kⱼ) uⱼ. Returns u (B, H, C, Dv).
    """
    total = log_decay.cumsum(-1)[..., None].exp()  # (B, H, C, 1)
    among = (rate * (k @ k.mT) * decay_matrix(log_decay)).tril(-1)  # (B, H, C, C)
    target = rate * (v - total * (k @ state))  # (B, H, C, Dv)
    return torch.linalg.solve_triangular(  # (I + among) u = target
        among, target, upper=False, unitriangular=True
    )


def unit_length(x: Tensor, eps: float = 1e-6) -> Tensor:
    """Divide the vectors of the last axis by their length: x / √(Σ x² + ε)."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)


class GatedDeltaRule(nn.Module):
    """Causal attention with a state that forgets and corrects: the gated delta rule.

    Yang et al. 2024 (arXiv:2412.06464), section 3.4, as in Qwen3-Next: with `kernel`
    its short convolution, with `gate` that of its output. α and β are computed of each
    token: β = σ(x W_β), and α = exp(−A · softplus(x W_α + b)).

    Args:
        d_model: width D of input and output.
        num_heads: heads H, each with a state.
        num_key_heads: heads G of queries and keys, each of which H / G heads share; H
            if not given.
        key_dim: width Dk of a query and a key; D / H if not given.
        value_dim: width Dv of a value; D / H if not given.
        kernel: mix queries, keys and values with those of the last tokens by a
            `ShortConvolution` of this size; as they are if None.
        gate: maps x (B, T, D) to (B, T, H · Dv), whose SiLU multiplies the output.
        eps: in the norm of the output.
        cast_first: of this norm, as in `rms_norm`.
        chunk: how many tokens are computed at once.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_key_heads: int | None = None,
        key_dim: int | None = None,
        value_dim: int | None = None,
        kernel: int | None = None,
        gate: nn.Module | None = None,
        eps: float = 1e-6,
        cast_first: bool = False,
        chunk: int = 64,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_heads=num_heads, chunk=chunk)
        if key_dim is None or value_dim is None:
            check_divisible(d_model=d_model, num_heads=num_heads)
        key_dim = d_model // num_heads if key_dim is None else key_dim
        value_dim = d_model // num_heads if value_dim is None else value_dim
        num_key_heads = num_heads if num_key_heads is None else num_key_heads
        check_positive(num_key_heads=num_key_heads)
        check_positive(key_dim=key_dim, value_dim=value_dim)
        check_divisible(num_heads=num_heads, num_key_heads=num_key_heads)
        self.d_model, self.num_heads, self.chunk = d_model, num_heads, chunk
        self.num_key_heads = num_key_heads
        keys, values = num_key_heads * key_dim, num_heads * value_dim
        self.q_proj = nn.Linear(d_model, keys, bias=False)
        self.k_proj = nn.Linear(d_model, keys, bias=False)
        self.v_proj = nn.Linear(d_model, values, bias=False)
        self.out_proj = nn.Linear(values, d_model, bias=False)
        self.beta_proj = nn.Linear(d_model, num_heads, bias=False)
        self.decay_proj = nn.Linear(d_model, num_heads, bias=False)
        self.log_rate, self.step_bias = initial_rates(num_heads, num_heads)
        self.convolution = None
        if kernel is not None:
            self.convolution = ShortConvolution(2 * keys + values, kernel)
        self.norm = RMSNorm(value_dim, eps, cast_first=cast_first)
        self.gate = gate

    def forward(
        self, x: Tensor, *, is_causal: bool = True, cache: StateCache | None = None
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); with a cache, x is what is new."""
        del is_causal  # it sees the past only, whatever is asked
        check_sequences(self.d_model, x=x)
        cache = StateCache() if cache is None else cache
        each = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, T, …)
        if self.convolution is not None:
            mixed, cache.past = self.convolution(torch.cat(each, dim=-1), cache.past)
            each = mixed.split([y.shape[-1] for y in each], dim=-1)
        q = unit_length(split_heads(each[0], self.num_key_heads))  # (B, G, T, Dk)
        k = unit_length(split_heads(each[1], self.num_key_heads))
        v = split_heads(each[2], self.num_heads)  # (B, H, T, Dv)
        shared_by = self.num_heads // self.num_key_heads
        q = q.repeat_interleave(shared_by, dim=1)  # (B, H, T, Dk)
        k = k.repeat_interleave(shared_by, dim=1)
        q = q / math.sqrt(q.shape[-1])
        beta = torch.sigmoid(self.beta_proj(x)).transpose(1, 2)  # (B, H, T)
        # In 16 bits a decay near 1 would be rounded to 1, or to the number before it.
        dtype = torch.promote_types(x.dtype, torch.float32)
        step = F.softplus(self.decay_proj(x).to(dtype) + self.step_bias)  # (B, T, H)
        log_decay = -(self.log_rate.to(dtype).exp() * step).mT  # (B, H, T)
        output, cache.state = delta_rule(
            q, k, v, beta, log_decay=log_decay, state=cache.state, chunk=self.chunk
        )
        cache.length += x.shape[1]
        merged = merge_heads(self.norm(output))  # (B, T, H · Dv)
        if self.gate is not None:
            merged = merged * F.silu(self.gate(x))
        return self.out_proj(merged)  # (B, T, D)

    def new_cache(self, max_len: int) -> StateCache:
        """Make an empty cache; its size does not depend on `max_len`."""
        check_positive(max_len=max_len)
        return StateCache()
