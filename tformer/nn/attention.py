"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim ·
Dv width of a value
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.compiler import is_compiling
from torch.utils.checkpoint import checkpoint

from tformer.checks import check_probability, check_scores
from tformer.nn.masks import causal_mask

Mask = Tensor | None
Pieces = Iterable[tuple[slice, slice]]  # some queries, and the keys that they may see
QUERIES_AT_A_TIME = 256  # where each has a mask of its own: a kernel makes floats of it


def attention_weights(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    is_causal: bool = False,
    window: int | None = None,
    sinks: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Compute how much each query takes from each key: softmax(scale · Q Kᵀ).

    Args:
        query: (B, H, T, Dh).
        key: (B, G, S, Dh); query head h reads key head h // (H / G) (arXiv:2305.13245).
        attn_mask: bool (T, S) or broadcasting to (B, H, T, S), True = may attend.
        bias: float, of such a shape, added to the scaled scores.
        is_causal: hide later keys; the last query lines up with the last key.
        window: with `is_causal`, how many keys a query sees, itself included.
        sinks: (H,), one more logit in each softmax, without a value (arXiv:2508.10925).
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c bounds each scaled score: c · tanh(score / c) (arXiv:2408.00118).

    Returns:
        (B, H, T, S), float32 or wider. Rows sum to 1, with sinks to less, or are 0
        where a query may attend to nothing.
    """
    masks = {"attn_mask": attn_mask, "bias": bias}
    numbers = {"window": window, "scale": scale, "softcap": softcap}
    check_scores(query, key, key, is_causal=is_causal, masks=masks, **numbers)
    (H, T, Dh), (G, S) = query.shape[1:], key.shape[1:3]
    if sinks is not None and sinks.shape != (H,):
        raise ValueError(f"sinks {tuple(sinks.shape)} must be (H,) = ({H},)")
    scale = 1 / math.sqrt(Dh) if scale is None else scale
    wide = torch.promote_types(query.dtype, torch.float32)  # 16 bits are for storage
    device = "cpu" if query.is_meta else query.device.type  # meta has no autocast
    with torch.autocast(device, enabled=False):
        key = key.to(wide).repeat_interleave(H // G, dim=1)  # (B, H, S, Dh)
        scores = (query.to(wide) * scale) @ key.mT  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    if is_causal:
        seen = causal_mask(T, S, window=window, device=query.device)  # (T, S)
        scores = scores.masked_fill(~seen, -math.inf)
    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.amax(dim=-1, keepdim=True) == -math.inf  # (B, H, T, 1)
    scores = scores.masked_fill(dead, 0.0)
    weights = torch.softmax(scores, dim=-1).masked_fill(dead, 0.0)
    if sinks is not None:  # what a sink takes, all others lack
        total = scores.logsumexp(dim=-1, keepdim=True)  # (B, H, T, 1)
        weights = weights * torch.sigmoid(total - sinks[:, None, None])
    return weights  # (B, H, T, S)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    is_causal: bool = False,
    window: int | None = None,
    sinks: Tensor | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Vaswani et al. 2017, section 3.2.1, equation 1 (arXiv:1706.03762). `value` is
    (B, G, S, Dv), `dropout_p` the probability of dropping a weight: pass 0.0 in
    `eval()`. All else is as in `attention_weights`, which torch's kernel need not hold.
    Returns (B, H, T, Dv), zeros where a query may attend to nothing.
    """
    masks = {"attn_mask": attn_mask, "bias": bias}
    numbers = {"window": window, "scale": scale, "softcap": softcap}
    check_scores(query, key, value, is_causal=is_causal, masks=masks, **numbers)
    check_probability(dropout_p=dropout_p)
    (H, T, Dh), (G, S), Dv = query.shape[1:], key.shape[1:3], value.shape[3]
    if window is None and T == 1:
        is_causal = False  # a single query is the newest: it sees every key
    given = [x for x in masks.values() if x is not None]
    formula = sinks is not None or softcap is not None  # torch's function takes neither
    by_flag = bool(is_causal and window is None and T == S and not (formula or given))
    options: dict[str, Any] = {"is_causal": is_causal, "sinks": sinks, **numbers}
    own = formula or is_causal or any(x.shape[-2] > 1 for x in given)
    # A compiler fuses the masks, and a program for any T must not ask how large it is.
    on_cpu = query.device.type == "cpu"
    at_a_time = QUERIES_AT_A_TIME * (1 if formula or on_cpu else 8)  # few, large calls
    if own and not by_flag and not is_compiling() and at_a_time < T:
        attend = partial(scaled_dot_product_attention, dropout_p=dropout_p, **options)
        if torch.is_grad_enabled() and torch.func.debug_unwrap(query) is query:
            # Computed again for the backward pass: no mask is kept for it.
            attend = partial(checkpoint, attend, use_reentrant=False)
        pieces, blind = [], max(0, T - S) if is_causal else 0  # before any key
        for begin in range(blind, T, at_a_time):
            end = min(begin + at_a_time, T)
            oldest = 0 if window is None else max(0, begin + S - T - window + 1)
            newest = end + S - T if is_causal else S
            pieces.append((slice(begin, end), slice(oldest, newest)))
        output = attend_in_pieces(attend, pieces, query, key, value, **masks)
        return F.pad(output, (0, 0, blind, 0))  # (B, H, T, Dv)

    if formula:
        weights = attention_weights(query, key, attn_mask, bias=bias, **options)
        value = value.to(weights.dtype).repeat_interleave(H // G, dim=1)
        return (F.dropout(weights, dropout_p) @ value).to(query.dtype)  # (B, H, T, Dv)
    if is_causal and not by_flag:
        seen = causal_mask(T, S, window=window, device=query.device)
        attn_mask = seen if attn_mask is None else attn_mask & seen
    if bias is not None:
        bias = bias.to(torch.promote_types(query.dtype, torch.float32))
        attn_mask = bias if attn_mask is None else bias.where(attn_mask, -math.inf)
    dead = None
    if not on_cpu:  # other kernels lack what the CPU's has
        shares = attn_mask is None and query.dtype == torch.bfloat16  # FlashAttention
        if G < H and not shares:
            key, value = (x.repeat_interleave(H // G, dim=1) for x in (key, value))
        if attn_mask is not None:
            allowed = attn_mask if bias is None else attn_mask > -math.inf
            dead = ~allowed.any(dim=-1, keepdim=True)
            attn_mask = attn_mask.masked_fill(dead, 1)
            attn_mask = attn_mask if bias is None else attn_mask.to(query.dtype)
    scale = 1 / math.sqrt(Dh) if scale is None else scale
    if Dh != Dv and T > 1:  # one width, or torch makes all (T, S): zeros change nothing
        inputs = [query, key, value]
        query, key, value = (F.pad(x, (0, max(Dh, Dv) - x.shape[3])) for x in inputs)
    few = key.shape[1] < H
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, by_flag, scale=scale, enable_gqa=few
    )
    output = output if Dh <= Dv else output[..., :Dv]  # (B, H, T, Dv)
    return output if dead is None else output.masked_fill(dead, 0.0)


def attend_in_pieces(
    attend: Callable[..., Tensor], pieces: Pieces, *inputs: Tensor, **masks: Mask
) -> Tensor:
    """Attend from some queries at a time; returns the outputs side by side."""
    query, key, value = inputs
    T, S, outputs = query.shape[2], key.shape[2], []
    for rows, keys in pieces:
        own = {
            name: x if x is None else x.expand(*x.shape[:-2], T, S)[..., rows, keys]
            for name, x in masks.items()
        }
        q, k, v = query[:, :, rows], key[:, :, keys], value[:, :, keys]
        outputs.append(attend(q, k, v, **own))
    return torch.cat(outputs, dim=2)  # (B, H, T, Dv)
