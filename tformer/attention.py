"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim
Dv width of a value
"""

# --8<-- [start:imports]
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.checks import check_probability
from tformer.masks import causal_mask, combine_masks

# --8<-- [end:imports]


# --8<-- [start:attention_weights]
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
    # --8<-- [end:attention_weights]


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
# --8<-- [start:scaled_dot_product_attention]
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
        return _fused(query, key, value, attn_mask, bias, is_causal, scale, dropout_p)

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
    # --8<-- [end:scaled_dot_product_attention]


# --8<-- [start:fused]
# The kernel turns a mask into floats: 1 GB where 16,384 queries have a row each. With
# this many queries at a time, memory grows with T and not with T × S.
QUERIES_AT_A_TIME = 256
# Where the kernel itself gives zeros to a query that may attend to nothing.
ZEROES_DEAD_ROWS = {"cpu"}


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Attend by torch's fused kernel, which never holds the scores."""
    (H, T, Dh), (G, S, Dv) = query.shape[1:], value.shape[1:]
    if attn_mask is not None:
        attn_mask = attn_mask[(None,) * (4 - attn_mask.ndim)]
    if bias is not None:
        bias = bias[(None,) * (4 - bias.ndim)].to(query.dtype)
    masks = [mask for mask in (attn_mask, bias) if mask is not None]
    is_causal = is_causal and T > 1  # a single query is the newest: it sees every key
    by_flag = bool(is_causal and T == S and not masks)

    has_rows = is_causal or any(mask.shape[2] > 1 for mask in masks)
    in_blocks = T > QUERIES_AT_A_TIME and not torch.compiler.is_compiling()
    if has_rows and not by_flag and in_blocks:
        return _in_blocks(
            query, key, value, attn_mask, bias, is_causal, scale, dropout_p
        )
    if is_causal and not by_flag:
        attn_mask = combine_masks(attn_mask, causal_mask(T, S, device=query.device))
    alive = None
    if attn_mask is not None and query.device.type not in ZEROES_DEAD_ROWS:
        alive = attn_mask.any(dim=-1, keepdim=True)  # (B, H, T, 1)
        attn_mask = attn_mask | ~alive
    if bias is not None:
        if attn_mask is not None:
            bias = torch.where(attn_mask, bias, -math.inf)
        attn_mask = bias

    # The kernel wants one width: columns of zeros change no score.
    query, key, value = (
        x if x.shape[-1] >= max(Dh, Dv) else F.pad(x, (0, max(Dh, Dv) - x.shape[-1]))
        for x in (query, key, value)
    )
    if H != G and not _serves_groups(query, attn_mask):
        key, value = (x.repeat_interleave(H // G, dim=1) for x in (key, value))
    output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        by_flag,
        scale=scale,
        enable_gqa=bool(query.shape[1] != key.shape[1]),
    )[..., :Dv]  # (B, H, T, Dv)
    return output if alive is None else output.masked_fill(~alive, 0.0)


def _in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Attend for some queries at a time, each block to the keys that it may see."""
    T, S = query.shape[2], key.shape[2]
    blind = max(0, T - S) if is_causal else 0  # the first queries, before any key
    outputs = []
    for begin in range(blind, T, QUERIES_AT_A_TIME):
        end = min(begin + QUERIES_AT_A_TIME, T)
        seen = S - (T - end) if is_causal else S
        mask_rows, bias_rows = (
            x if x is None else x.expand(-1, -1, T, S)[:, :, begin:end, :seen]
            for x in (attn_mask, bias)
        )
        outputs.append(
            _fused(
                query[:, :, begin:end],
                key[:, :, :seen],
                value[:, :, :seen],
                mask_rows,
                bias_rows,
                is_causal,
                scale,
                dropout_p,
            )
        )
    output = torch.cat(outputs, dim=2)
    return F.pad(output, (0, 0, blind, 0)) if blind else output  # (B, H, T, Dv)


def _serves_groups(query: Tensor, attn_mask: Tensor | None) -> bool:
    """Say whether the kernel knows of groups; else torch would hold the scores."""
    half = query.dtype in (torch.float16, torch.bfloat16)
    return query.device.type == "cpu" or (query.is_cuda and half and attn_mask is None)
    # --8<-- [end:fused]


# --8<-- [start:check]
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
    # --8<-- [end:check]
