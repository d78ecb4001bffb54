"""Attention by torch's fused kernel, made to keep our promises about masks.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim ·
Dv width of a value
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tformer.fast.precision import HALF
from tformer.nn.masks import causal_mask, combine_masks

# The kernel turns a mask into floats: 1 GB where 16,384 queries have a row each. With
# this many queries at a time, memory grows with T and not with T × S.
QUERIES_AT_A_TIME = 256
# Where the kernel itself gives zeros to a query that may attend to nothing.
ZEROES_DEAD_ROWS = {"cpu"}
# Whether the one of the CPU knows of groups; in torch 2.9 it does not.
CPU_SERVES_GROUPS = torch.__version__ >= "2.13"  # as numbers: 2.9 is older


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    """Attend by torch's fused kernel, which need not hold the scores.

    The arguments are those of `scaled_dot_product_attention`, which has checked them.
    On a CPU torch does hold them with dropout, and with a bias that wants a gradient.

    Returns:
        (B, H, T, Dv).
    """
    (H, T, Dh), (G, S, Dv) = query.shape[1:], value.shape[1:]
    if attn_mask is not None:
        attn_mask = attn_mask[(None,) * (4 - attn_mask.ndim)]
    if bias is not None:
        bias = bias[(None,) * (4 - bias.ndim)]
        # On a CPU the kernel can add a bias to scores of half precision in float32.
        exact = query.device.type == "cpu" and query.dtype in HALF
        bias = bias.to(torch.float32 if exact else query.dtype)
    scale = 1 / math.sqrt(Dh) if scale is None else scale  # before the width is padded
    if not scale > 0:  # the kernel would multiply -inf, which is the future, by it
        query, scale = query * scale, 1.0
    eager, on_cpu = not torch.compiler.is_compiling(), query.device.type == "cpu"
    masks = [mask for mask in (attn_mask, bias) if mask is not None]
    if not (eager or dropout_p) and on_cpu and query.dtype in HALF:
        # A graph cannot look for an infinity, which the kernel loses in half precision:
        # x - x makes NaN of one.
        query, key = query + (query - query), key + (key - key)
    if is_causal and T == 1:
        is_causal = False  # a single query is the newest: it sees every key
    by_flag = is_causal and not masks
    if by_flag and T != S:  # with `and` the compiler would hand a symbol to the kernel
        by_flag = False  # the flag would line up the first query with the first key

    many = eager and T > QUERIES_AT_A_TIME and not by_flag
    if many and (is_causal or any(mask.shape[2] > 1 for mask in masks)):
        return _in_blocks(
            query, key, value, attn_mask, bias, is_causal, scale, dropout_p
        )
    if is_causal and not by_flag:
        attn_mask = combine_masks(attn_mask, causal_mask(T, S, device=query.device))
    if bias is not None and attn_mask is not None:
        bias = torch.where(attn_mask, bias, -math.inf)
    attn_mask = attn_mask if bias is None else bias
    alive = None
    if attn_mask is not None and query.device.type not in ZEROES_DEAD_ROWS:
        allowed = attn_mask if bias is None else bias > -math.inf
        alive = allowed.any(dim=-1, keepdim=True)  # (B, H, T, 1)
        attn_mask = attn_mask.masked_fill(~alive, 1)  # of a bias: any finite number

    # The kernel wants one width: columns of zeros change no score.
    if Dh < Dv:
        query, key = (F.pad(x, (0, Dv - Dh)) for x in (query, key))
    elif Dv < Dh:
        value = F.pad(value, (0, Dh - Dv))
    grouped = False
    if H != G:
        grouped = _serves_groups(query, attn_mask)
        if not grouped:
            key, value = (x.repeat_interleave(H // G, dim=1) for x in (key, value))
    output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask,
        dropout_p,
        by_flag,
        scale=scale,
        enable_gqa=grouped,
    )
    output = output if Dh <= Dv else output[..., :Dv]  # (B, H, T, Dv)
    if not (eager or dropout_p) and attn_mask is None and on_cpu:
        return _with_nan(output, query, key, by_flag)
    if not dropout_p and _lost_nan(output, attn_mask):
        if output.dtype in HALF:  # in float32 an infinite score is not lost
            query, key, value = (x.float() for x in (query, key, value))
            mask_alone, value = attn_mask if bias is None else None, value[..., :Dv]
            return fused_attention(
                query, key, value, mask_alone, bias, by_flag, scale
            ).to(output.dtype)
        seen = torch.ones(T, S, dtype=torch.bool).tril(S - T if by_flag else S)
        mask = seen[None, None]
        return fused_attention(query, key, value[..., :Dv], mask, scale=scale)
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
            fused_attention(
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


def _lost_nan(output: Tensor, attn_mask: Tensor | None) -> bool:
    """Say whether the kernel may have lost a NaN: on a CPU, without a mask or in half.

    It gives zeros where all scores of a row are NaN, and in half precision where one is
    infinite. A row of zeros that may attend to something is rare otherwise.
    """
    half = output.dtype in HALF
    if output.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    if attn_mask is not None and not half:
        return False
    try:
        first = output.select(-1, 0)
        if int(first.count_nonzero()) == first.numel():  # NaN is not zero
            return False
        if attn_mask is None:
            return True
        bias = attn_mask.is_floating_point()
        seen = attn_mask != -math.inf if bias else attn_mask
        return bool((seen.any(dim=-1) & (output == 0).all(dim=-1)).any())
    except RuntimeError:  # torch.func.vmap has no single answer
        return False


def _with_nan(output: Tensor, query: Tensor, key: Tensor, is_causal: bool) -> Tensor:
    """Put NaN where the kernel of a CPU has lost it, in a graph that cannot ask.

    Without a mask a row of zeros is rare. It was NaN if its query, or a key that it
    sees, has a number that is not finite.
    """
    # x - x is 0 or NaN, and its sum is faster than a question about each number.
    wrong = (key - key).sum(dim=-1).isnan()  # (B, G, S)
    seen = wrong.cumsum(dim=-1) > 0 if is_causal else wrong.any(dim=-1, keepdim=True)
    seen = seen.repeat_interleave(
        query.shape[1] // key.shape[1], dim=1
    )  # (B, H, T | 1)
    wrong = seen | (query - query).sum(dim=-1).isnan()  # (B, H, T)
    lost = wrong & (output.abs().sum(dim=-1) == 0)
    return output + torch.where(lost, math.nan, 0.0)[..., None].to(output.dtype)


def _serves_groups(query: Tensor, attn_mask: Tensor | None) -> bool:
    """Say whether the kernel knows of groups; else torch would hold the scores."""
    if query.device.type == "cpu":
        return CPU_SERVES_GROUPS
    return query.is_cuda and query.dtype in HALF and attn_mask is None
