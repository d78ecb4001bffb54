"""Multi-head attention: several attentions side by side, each in its own projection.

B batch · T queries · S keys · D d_model · H heads · G key/value heads · Dh head_dim
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer.checks import (
    check_divisible,
    check_positive,
    check_probability,
    check_sequences,
)
from tformer.nn.attention import attention_weights, scaled_dot_product_attention
from tformer.nn.cache import Cache, KeysValues


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the width into heads: (B, T, H · Dh) to (B, H, T, Dh).

    The view comes first and the transpose after it: a view straight to (B, H, T, Dh)
    has the right shape and mixes positions with features.
    """
    B, T, D = x.shape
    return x.view(B, T, num_heads, D // num_heads).transpose(1, 2)  # (B, H, T, Dh)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads side by side again: (B, H, T, Dh) to (B, T, H · Dh)."""
    return x.transpose(1, 2).flatten(2)  # (B, T, D)


class MultiHeadAttention(nn.Module):
    """Attend with H heads: Concat(head₁, …) W^O, headᵢ = Attention(Q Wᵢ^Q, …).

    Vaswani et al. 2017, section 3.2.2 (arXiv:1706.03762). With fewer key/value heads
    than heads it is grouped-query attention (Ainslie et al. 2023, arXiv:2305.13245);
    with one, multi-query attention (arXiv:1911.02150). Further parts are handed in.

    Args:
        d_model: width D of input and output.
        num_heads: heads H.
        num_kv_heads: key/value heads G; divides H. H if not given.
        head_dim: width Dh of a head; D / H if not given.
        bias: give the four projections a bias. The paper has none, torch does.
        out_bias: the same of the last; Qwen2 has none there (arXiv:2407.10671, 2.2.1).
        dropout: probability in [0, 1) of dropping an attention weight in training.
        q_norm: maps queries (B, H, T, Dh) to the same, such as `RMSNorm(Dh)`.
        k_norm: the same for keys (arXiv:2010.04245).
        rotary: rotates queries and keys from position `start` on, or at `positions`.
        temperature: scales queries from position `start` on: `QueryTemperature`.
        relative: makes from T and S the bias of the scores, such as `ALiBi`.
        gate: maps the input (B, T, D) to (B, T, H · Dh), whose sigmoid multiplies what
            the heads bring; or to (B, T, H), a number a head (arXiv:2505.06708).
        sinks: (H,), a parameter; as window, scale and softcap of `attention_weights`.
    """

    recorders: tuple[Callable[[Tensor], None], ...] = ()  # of `record_weights`

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        dropout: float = 0.0,
        q_norm: nn.Module | None = None,
        k_norm: nn.Module | None = None,
        rotary: nn.Module | None = None,
        temperature: nn.Module | None = None,
        relative: nn.Module | None = None,
        gate: nn.Module | None = None,
        sinks: nn.Parameter | None = None,
        window: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_positive(d_model=d_model, num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        if head_dim is None:
            check_divisible(d_model=d_model, num_heads=num_heads)
            head_dim = d_model // num_heads
        check_positive(head_dim=head_dim)
        check_probability(dropout=dropout)
        self.d_model, self.num_heads, self.window = d_model, num_heads, window
        self.num_kv_heads, self.head_dim, self.dropout = num_kv_heads, head_dim, dropout

        self.q_proj = nn.Linear(d_model, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(d_model, num_kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(d_model, num_kv_heads * head_dim, bias=bias)
        out_bias = bias if out_bias is None else out_bias
        self.out_proj = nn.Linear(num_heads * head_dim, d_model, bias=out_bias)
        self.q_norm, self.k_norm, self.scale = q_norm, k_norm, scale
        self.rotary, self.relative, self.gate = rotary, relative, gate
        self.temperature, self.sinks, self.softcap = temperature, sinks, softcap
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights by Glorot's uniform, variance 2 / (in + out); biases 0."""
        for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            nn.init.xavier_uniform_(projection.weight)
            if projection.bias is not None:
                nn.init.zeros_(projection.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: Cache | None = None,
        keys_values: KeysValues | None = None,
        positions: Tensor | None = None,
        around: Callable[..., Tensor] | None = None,
    ) -> Tensor:
        """Attend from `query` to `key`; to itself if no key is given.

        Args:
            query: (B, T, D).
            key: (B, S, D); `query` if not given (self-attention).
            value: (B, S, D); `key` if not given.
            attn_mask: as `scaled_dot_product_attention` has it, and `is_causal` too.
            is_causal: hide later keys.
            cache: of self-attention: `query` is what is new, S counts all so far.
            keys_values: of `project`, in place of key and value.
            positions: (T,) or (B, T), of query and key; those after the cache if None.
            around: called with `scaled_dot_product_attention` and its arguments, in its
                place, such as `attend_to_segments`.

        Returns:
            (B, T, D). `record_weights` keeps the weights.
        """
        if (value if key is None else cache) is not None:
            raise ValueError("value needs key, and a cache is for self-attention alone")
        check_sequences(self.d_model, query=query)
        if positions is not None and (self.relative or self.window):
            raise ValueError("positions are for attention without relative, window")
        at: dict[str, object] = {"start": 0 if cache is None else cache.length}
        at = at if positions is None else {"positions": positions}
        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, T, Dh)
        q = self.place(q, self.q_norm, **at)
        q = q if self.temperature is None else self.temperature(q, **at)
        if keys_values is None:
            key = query if key is None else key
            keys_values = self.project(key, key if value is None else value, **at)
        if cache is not None:
            keys_values = cache.append(*keys_values)  # S is now the whole past
        k, v = keys_values  # (B, G, S, Dh)
        bias = None if self.relative is None else self.relative(q.shape[2], k.shape[2])
        scoring: dict[str, Any] = {"bias": bias, "is_causal": is_causal}
        scoring |= {"sinks": self.sinks, "window": self.window}
        scoring |= {"scale": self.scale, "softcap": self.softcap}
        attend: Callable[..., Tensor] = scaled_dot_product_attention
        if self.recorders and around is not None:
            raise ValueError("around makes no weights that can be recorded")
        if self.recorders:
            weights = attention_weights(q, k, attn_mask, **scoring)  # (B, H, T, S)
            for keep in self.recorders:
                keep(weights)
        attend = attend if around is None else partial(around, attend)
        dropout_p = self.dropout if self.training else 0.0
        heads = attend(q, k, v, attn_mask, dropout_p=dropout_p, **scoring)
        if self.gate is not None:
            gate = split_heads(self.gate(query), self.num_heads)  # (B, H, T, Dh or 1)
            heads = heads * torch.sigmoid(gate)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def project(self, key: Tensor, value: Tensor, **at: object) -> KeysValues:
        """Make keys and values (B, G, S, Dh) of (B, S, D) `at` a start or positions."""
        check_sequences(self.d_model, key=key, value=value)
        k = split_heads(self.k_proj(key), self.num_kv_heads)
        k = self.place(k, self.k_norm, **at)
        return k, split_heads(self.v_proj(value), self.num_kv_heads)

    def place(self, x: Tensor, norm: nn.Module | None, **at: object) -> Tensor:
        """Normalise queries or keys (B, H, T, Dh), and rotate them."""
        x = x if norm is None else norm(x).to(x.dtype)  # CUDA's autocast widens it
        return x if self.rotary is None else self.rotary(x, **at)
