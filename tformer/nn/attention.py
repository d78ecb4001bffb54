"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim
Dv width of a value
"""

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_probability
from tformer.fast.attention import fused_attention
from tformer.nn.masks import causal_mask, combine_masks


def attention_weights(
    query: Tensor,
    key: Tensor,
    allowed: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    scale: float,
    softcap: float | None = None,
) -> Tensor:
    """Say how much each query takes from each key: softmax(scale · Q Kᵀ).

    Args:
        query: (B, H, T, Dh).
        key: (B, H, S, Dh).
        allowed: bool, broadcastable to (B, H, T, S), True = may attend.
        bias: float, broadcastable to (B, H, T, S), added to the scores.
        scale: factor of the scores, 1 / √Dh in the paper.
        softcap: c, which bounds a score by c · tanh(score / c).

    Returns:
        (B, H, T, S); rows sum to 1, or are 0 where a query may attend to nothing.
    """
    # Scaling the query first keeps large products inside the range of float16.
    scores = (query * scale) @ key.transpose(-2, -1)  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)

    if allowed is None and bias is None:
        return torch.softmax(scores, dim=-1)  # (B, H, T, S)

    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.amax(dim=-1, keepdim=True) == -math.inf  # (B, H, T, 1)
    weights = torch.softmax(scores.masked_fill(dead, 0.0), dim=-1)
    return weights.masked_fill(dead, 0.0)


@overload
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
    return_weights: Literal[False] = False,
) -> Tensor: ...
@overload
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
    return_weights: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@overload
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
    return_weights: bool,
) -> Tensor | tuple[Tensor, Tensor]: ...
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
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Vaswani et al. 2017, section 3.2.1, equation 1 (arXiv:1706.03762). Where neither
    weights nor a softcap are asked for, torch's fused kernel does the same arithmetic
    without holding the T × S scores. A query that may attend to nothing gets zeros.

    Args:
        query: (B, H, T, Dh).
        key: (B, G, S, Dh); G divides H, and query head h reads key head h // (H / G)
            (grouped queries, arXiv:2305.13245).
        value: (B, G, S, Dv).
        attn_mask: bool, broadcastable to (B, H, T, S), True = may attend.
        bias: float, broadcastable to (B, H, T, S), added to the scaled scores.
        is_causal: hide later keys. With T != S the last query lines up with the last
            key; torch's own flag lines up the first ones.
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c > 0, which bounds each scaled score: c · tanh(score / c)
            (Gemma 2, arXiv:2408.00118); before the bias is added.
        dropout_p: probability in [0, 1) of dropping a weight; the rest grow by
            1 / (1 - p). A function does not know of `eval()`: pass 0.0 there.
        return_weights: also return the weights, as they are before dropout.

    Returns:
        (B, H, T, Dv), or with `return_weights` a pair of it and (B, H, T, S).

    Raises:
        TypeError: the mask is not boolean, the bias not floating; dtypes differ.
        ValueError: shapes do not match, H is not a multiple of G, a length is 0, or
            `softcap` or `dropout_p` is out of its range.
    """
    _check_attention(query, key, value, attn_mask, bias, softcap, dropout_p)
    (H, T, Dh), S = query.shape[1:], key.shape[2]
    scale = 1.0 / math.sqrt(Dh) if scale is None else scale

    if not return_weights and softcap is None:
        if bias is None and not (is_causal or dropout_p) and _in_cache(query, key):
            return _one_by_one(query, key, value, attn_mask, scale)
        return fused_attention(
            query, key, value, attn_mask, bias, is_causal, scale, dropout_p
        )

    allowed = attn_mask
    if is_causal:
        allowed = combine_masks(attn_mask, causal_mask(T, S, device=query.device))
    if key.shape[1] != H:
        key = key.repeat_interleave(H // key.shape[1], dim=1)  # (B, H, S, Dh)
        value = value.repeat_interleave(H // value.shape[1], dim=1)  # (B, H, S, Dv)
    q, k = _roomy(query), _roomy(key)
    with _without_autocast(query.device):
        weights = attention_weights(
            q, k, allowed, bias=bias, scale=scale, softcap=softcap
        ).to(query.dtype)
        output = F.dropout(weights, dropout_p) @ value  # (B, H, T, Dv)
    return (output, weights) if return_weights else output


def _one_by_one(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, scale: float
) -> Tensor:
    """Attend by the formula, one sequence at a time: its scores fit the cache."""
    B = len(query)
    masks: Iterable[Tensor | None] = [attn_mask] * B
    if attn_mask is not None and attn_mask.ndim == 4:
        masks = attn_mask.expand(B, -1, -1, -1)[:, None]
    outputs = [
        scaled_dot_product_attention(q, k, v, mask, scale=scale, return_weights=True)[0]
        for q, k, v, mask in zip(
            query[:, None], key[:, None], value[:, None], masks, strict=True
        )
    ]
    return torch.cat(outputs)  # (B, H, T, Dv)


def _in_cache(query: Tensor, key: Tensor) -> bool:
    """Say whether that beats the kernel, as in bfloat16 on a CPU, without gradients."""
    return (
        query.dtype == torch.bfloat16
        and query.device.type == "cpu"
        and 64 <= query.shape[2] <= 512
        and key.shape[2] <= 512
        and not torch.is_grad_enabled()
        and not torch.compiler.is_compiling()
    )


def _roomy(x: Tensor) -> Tensor:
    """Return float16 as float32: a score above 65,504 would be infinite."""
    return x.float() if x.dtype == torch.float16 else x


def _without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Keep autocast from taking the products back to half precision."""
    if torch.compiler.is_compiling() or torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _check_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    bias: Tensor | None,
    softcap: float | None,
    dropout_p: float,
) -> None:
    """Check what enters."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim != 4:
            raise ValueError(
                f"{name} must be (batch, heads, length, width), not {_shape(x)}"
            )
        if 0 in x.shape:
            raise ValueError(f"{name} is empty: its shape is {_shape(x)}")
        if not x.is_floating_point():
            raise TypeError(f"{name} must be floating, not {x.dtype}")
        if x.dtype != query.dtype:
            raise TypeError(f"{name} is {x.dtype} but query is {query.dtype}")
    (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
    if key.shape[3] != Dh:
        raise ValueError(
            f"key has head_dim {key.shape[3]} but query has {Dh}: {_both(query, key)}"
        )
    if key.shape[0] != B:
        raise ValueError(
            f"key has batch {key.shape[0]} but query has {B}: {_both(query, key)}"
        )
    if value.shape[:3] != key.shape[:3]:
        raise ValueError(
            "value and key must agree in batch, heads and length: "
            f"value is {_shape(value)}, key is {_shape(key)}"
        )
    if H % G:
        raise ValueError(
            f"query has {H} heads, which is not a multiple of key's {G}: "
            f"{_both(query, key)}"
        )
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        raise TypeError(
            f"attn_mask must be torch.bool (True = may attend), not {attn_mask.dtype}; "
            "what is added to the scores is `bias`"
        )
    if bias is not None and not bias.is_floating_point():
        raise TypeError(
            f"bias must be floating, not {bias.dtype}; a mask is `attn_mask`"
        )
    for name, added in (("attn_mask", attn_mask), ("bias", bias)):
        if added is None:
            continue
        full = (B, H, T, S)
        pairs = zip(reversed(added.shape), reversed(full), strict=False)
        if added.ndim > 4 or any(size not in (1, whole) for size, whole in pairs):
            raise ValueError(
                f"{name} must broadcast to (B, H, T, S) = {full}, not {_shape(added)}"
            )
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap ({softcap}) must be above 0")
    check_probability(dropout_p=dropout_p)


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _both(query: Tensor, key: Tensor) -> str:
    return f"query is {_shape(query)}, key is {_shape(key)}"
