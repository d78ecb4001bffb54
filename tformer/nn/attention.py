"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim ·
Dv width of a value
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.fast.attention import fused_attention
from tformer.fast.precision import in_float32
from tformer.nn.attention_checks import check_scores, check_values
from tformer.nn.masks import causal_mask, combine_masks


@in_float32
def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Compute how much each query takes from each key: softmax(scale · Q Kᵀ).

    Args:
        query: (B, H, T, Dh).
        key: (B, G, S, Dh); G divides H, and query head h reads key head h // (H / G):
            grouped-query attention (arXiv:2305.13245).
        attn_mask: bool, True = may attend; (T, S), or four axes that broadcast to
            (B, H, T, S).
        bias: float, of such a shape, added to the scaled scores.
        is_causal: hide later keys. With T != S the last query lines up with the last
            key; torch's own flag lines up the first ones.
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c > 0, which bounds each scaled score: c · tanh(score / c)
            (Gemma 2, arXiv:2408.00118); before the bias is added.

    Returns:
        (B, H, T, S); rows sum to 1, or are 0 where a query may attend to nothing.
        float32 for queries in half precision.

    Raises:
        TypeError: the mask is not boolean, the bias not floating; dtypes differ.
        ValueError: shapes do not match, or a number is out of its range.
    """
    check_scores(query, key, attn_mask, bias, scale, softcap)
    T, S, Dh = query.shape[2], key.shape[2], query.shape[3]
    scale = 1 / math.sqrt(Dh) if scale is None else scale
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (B, H, S, Dh)
    scores = (query * scale) @ key.transpose(-2, -1)  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if is_causal:
        attn_mask = combine_masks(attn_mask, causal_mask(T, S, device=query.device))
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf)

    if attn_mask is None and bias is None:
        return torch.softmax(scores, dim=-1)  # (B, H, T, S)
    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.amax(dim=-1, keepdim=True) == -math.inf  # (B, H, T, 1)
    weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1)
    return weights.masked_fill(dead, 0.0)  # (B, H, T, S)


@in_float32
def mix_values(weights: Tensor, value: Tensor, dropout_p: float = 0.0) -> Tensor:
    """Average values (B, G, S, Dv) by weights (B, H, T, S): (B, H, T, Dv)."""
    value = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
    return F.dropout(weights, dropout_p) @ value.to(weights.dtype)  # (B, H, T, Dv)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Vaswani et al. 2017, section 3.2.1, equation 1 (arXiv:1706.03762). `value` is
    (B, G, S, Dv); `dropout_p` the probability in [0, 1) of dropping a weight, where the
    rest grow by 1 / (1 - p): a function does not know of `eval()`, pass 0.0 there. All
    else, and what is raised, is as in `attention_weights`.

    Returns:
        (B, H, T, Dv); zeros where a query may attend to nothing.
    """
    check_scores(query, key, attn_mask, bias, scale, softcap)
    check_values(key, value, dropout_p)
    options: dict[str, Any] = {"bias": bias, "is_causal": is_causal, "scale": scale}
    if softcap is None:  # torch's kernel does the same, and need not hold the weights
        return fused_attention(
            query, key, value, attn_mask, **options, dropout_p=dropout_p
        )
    weights = attention_weights(query, key, attn_mask, **options, softcap=softcap)
    return mix_values(weights, value, dropout_p).to(query.dtype)  # (B, H, T, Dv)
