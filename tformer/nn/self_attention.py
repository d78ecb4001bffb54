"""Causal self-attention that is built with parts: what language models have today.

B batch · T new tokens · S tokens so far · D d_model · H heads · G key/value heads ·
Dh head_dim
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_probability
from tformer.fast.any_length import may_exceed
from tformer.fast.linear import Linear
from tformer.nn.attention import scaled_dot_product_attention
from tformer.nn.attention_checks import check_sequences
from tformer.nn.cache import KeyValueCache
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.masks import sliding_window_mask
from tformer.nn.rolling import RollingCache


class SelfAttention(nn.Module):
    """Attend to the tokens so far; positions, norms and windows are parts of it.

    Without any part it is a causal `MultiHeadAttention` without biases. In a forward
    the parts come in this order: the norms of queries and keys, the turning, the cache,
    the scores with scale, softcap and `relative`, the window, the sinks.

    Args:
        d_model: width D of input and output.
        num_heads: heads H.
        num_kv_heads: key/value heads G; divides H. H if not given.
        head_dim: width Dh of a head; D / H if not given.
        bias: give the four projections a bias.
        dropout: probability in [0, 1) of dropping an attention weight in training.
        rotary: a module that turns queries and keys (B, H, T, Dh) from position
            `start` on, such as `RotaryEmbedding`.
        relative: a module that makes from T and S what is added to the scores, (T, S)
            or broadcastable with four axes to (B, H, T, S); the last query lines up
            with the last key.
        qk_norm: makes the norm of each query and the norm of each key from their
            width Dh, such as `RMSNorm` (Henry et al. 2020, arXiv:2010.04245).
        window: how many keys a query sees, itself included; all so far if None.
        sinks: learn one more logit for each head, which joins the softmax and has no
            value (gpt-oss, arXiv:2508.10925).
        softcap: c > 0, which bounds each score: c · tanh(score / c).
        scale: factor of the scores; 1 / √Dh if not given.

    Raises:
        ValueError: H does not divide D and no `head_dim` is given, G does not divide
            H, or a number is out of its range.
    """

    # `record_weights` puts another function in its place, which keeps the weights.
    attend = staticmethod(scaled_dot_product_attention)

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        head_dim: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
        rotary: nn.Module | None = None,
        relative: nn.Module | None = None,
        qk_norm: Callable[[int], nn.Module] | None = None,
        window: int | None = None,
        sinks: bool = False,
        softcap: float | None = None,
        scale: float | None = None,
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
        if window is not None:
            check_positive(window=window)
        if softcap is not None and not 0 < softcap < math.inf:
            raise ValueError(f"softcap ({softcap}) must be above 0 and finite")
        self.d_model = d_model
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads
        self.head_dim = head_dim
        self.dropout = dropout
        self.window = window
        self.softcap = softcap
        self.scale = scale

        self.q_proj = Linear(d_model, num_heads * head_dim, bias=bias)
        self.k_proj = Linear(d_model, num_kv_heads * head_dim, bias=bias)
        self.v_proj = Linear(d_model, num_kv_heads * head_dim, bias=bias)
        self.out_proj = Linear(num_heads * head_dim, d_model, bias=bias)
        self.q_norm = None if qk_norm is None else qk_norm(head_dim)
        self.k_norm = None if qk_norm is None else qk_norm(head_dim)
        self.rotary = rotary
        self.relative = relative
        self.sinks = nn.Parameter(torch.zeros(num_heads)) if sinks else None

    def forward(
        self, x: Tensor, *, cache: KeyValueCache | RollingCache | None = None
    ) -> Tensor:
        """Attend from each position of x to itself and to what came before.

        Args:
            x: (B, T, D).
            cache: of `new_cache`; x is then only what is new, and S counts all the
                tokens so far.

        Returns:
            (B, T, D). `record_weights` keeps the weights; with sinks their first
            column is the sink's.
        """
        check_sequences(self.d_model, x=x)
        start = 0 if cache is None else cache.length
        q = split_heads(self.q_proj(x), self.num_heads)  # (B, H, T, Dh)
        k = split_heads(self.k_proj(x), self.num_kv_heads)  # (B, G, T, Dh)
        v = split_heads(self.v_proj(x), self.num_kv_heads)  # (B, G, T, Dh)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotary is not None:
            q, k = self.rotary(q, start=start), self.rotary(k, start=start)
        if cache is not None:
            k, v = cache.append(k, v)  # (B, G, S, Dh): keys are kept turned

        T, S = q.shape[2], k.shape[2]
        bias = None if self.relative is None else self.relative(T, S)
        mask = None
        if self.window is not None and may_exceed(S, self.window):
            mask = sliding_window_mask(T, self.window, S, device=x.device)  # (T, S)
        if self.sinks is not None:
            k, v, mask, bias = with_sinks(self.sinks, k, v, mask, bias)
        heads = self.attend(
            q,
            k,
            v,
            mask,
            bias=bias,
            is_causal=True,  # the last query lines up with the last key
            scale=self.scale,
            softcap=self.softcap,
            dropout_p=self.dropout if self.training else 0.0,
        )  # (B, H, T, Dh)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def new_cache(self, max_len: int) -> KeyValueCache | RollingCache:
        """Make an empty cache for texts of so many tokens.

        With a window it forgets what lies before it, where that takes less memory.
        """
        if self.window is not None and 2 * self.window < max_len:
            return RollingCache(self.window)
        return KeyValueCache(max_len)


def with_sinks(
    sinks: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Put a sink before all keys: a key and a value of zeros, and a bias.

    Its score is 0 + the bias, and its value adds nothing. So the weights of the other
    keys sum to less than 1, as softmax over all columns gives them without the first.

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
    column = sinks[None, :, None, None]  # (1, H, 1, 1)
    if bias is None:
        bias = column.new_zeros(1, 1, 1, S)
    bias = bias[(None,) * (4 - bias.ndim)].to(sinks.dtype)
    rows = bias.shape[0], len(sinks), bias.shape[2]
    bias = torch.cat((column.expand(*rows, 1), bias.expand(*rows, S)), dim=-1)
    if mask is not None:
        mask = torch.cat((mask.new_ones(*mask.shape[:-1], 1), mask), dim=-1)
    nothing = key.new_zeros(*key.shape[:2], 1, key.shape[3])  # (B, G, 1, Dh)
    key = torch.cat((nothing, key), dim=2)  # (B, G, 1 + S, Dh)
    value = torch.cat((nothing, value), dim=2)
    return key, value, mask, bias
