"""Attention in tiles: exact, and without all T × S scores at once (FlashAttention).

B batch · H heads · G key/value heads · R = H / G queries of a group · T queries ·
S keys · Dh head_dim · Dv width of a value

What is read with `x[..., rows, :]` and written with `x[..., rows, :] = …` is what a
kernel moves between slow and fast memory; all else has the size of a tile.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tformer.checks import check_positive, check_scores
from tformer.nn.attention import Mask


class Tiling(NamedTuple):
    """What makes the scores of a tile, and how large a tile is."""

    attn_mask: Mask  # of five axes that broadcast to (B, G, R, T, S), as `bias`
    bias: Mask
    is_causal: bool
    scale: float
    softcap: float | None
    query_tile: int
    key_tile: int


def tiles(length: int, size: int) -> Iterator[slice]:
    """Cut positions 0 to length − 1 into slices of `size`; the last may be shorter."""
    for begin in range(0, length, size):
        yield slice(begin, min(begin + size, length))


def tile_of(x: Tensor, rows: slice, columns: slice) -> Tensor:
    """Take a tile of a mask or a bias, which may have one row or column for all."""
    rows = rows if x.shape[-2] > 1 else slice(None)
    columns = columns if x.shape[-1] > 1 else slice(None)
    return x[..., rows, columns]


def is_hidden(rows: slice, columns: slice, T: int, S: int) -> bool:
    """Say whether every key of a tile lies in the future of every query."""
    return columns.start > rows.stop - 1 + S - T


def tile_scores(
    q: Tensor, k: Tensor, rows: slice, columns: slice, T: int, S: int, how: Tiling
) -> tuple[Tensor, Tensor]:
    """Compute the scores of one tile: scale · q kᵀ, capped, with bias, then masked.

    q (..., rows, Dh) are some of all T queries, and k (..., columns, Dh) of all S keys.
    Returns (..., rows, columns), -inf where hidden; and the slope of the cap there,
    1 − (capped / softcap)², which the backward pass needs.
    """
    scores = how.scale * q @ k.mT  # (..., rows, columns)
    slope = torch.ones_like(scores[..., :1, :1])
    if how.softcap is not None:
        capped = torch.tanh(scores / how.softcap)
        scores, slope = how.softcap * capped, 1 - capped.square()
    if how.bias is not None:
        scores = scores + tile_of(how.bias, rows, columns).to(scores.dtype)
    if how.attn_mask is not None:
        hidden = ~tile_of(how.attn_mask, rows, columns)
        scores = scores.masked_fill(hidden, -math.inf)
    if how.is_causal:
        newest = torch.arange(rows.start, rows.stop, device=q.device) + S - T
        position = torch.arange(columns.start, columns.stop, device=q.device)
        scores = scores.masked_fill(position > newest[:, None], -math.inf)
    return scores, slope


def tiled_forward(
    query: Tensor, key: Tensor, value: Tensor, how: Tiling
) -> tuple[Tensor, Tensor]:
    """Attend tile by tile, with softmax's maximum and sum kept up to date.

    Dao et al. 2022, algorithm 1 (arXiv:2205.14135), with the loops in the order of
    Dao 2023 (arXiv:2307.08691): a tile of queries meets one tile of keys after the
    other. Milakov and Gimelshein 2018 (arXiv:1805.02867) have the online softmax.

    Of query (B, G, R, T, Dh), key (B, G, 1, S, Dh) and value (B, G, 1, S, Dv) it makes
    the output (B, G, R, T, Dv), zeros where a query may attend to nothing; and
    log Σ exp(score) of each query, (B, G, R, T, 1), -inf there.
    """
    T, S = query.shape[-2], key.shape[-2]
    wide = torch.promote_types(query.dtype, torch.float32)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1])  # (B, G, R, T, Dv)
    logsumexp = query.new_zeros(*query.shape[:-1], 1, dtype=wide)  # (B, G, R, T, 1)
    for rows in tiles(T, how.query_tile):
        q = query[..., rows, :].to(wide)
        m = torch.full_like(q[..., :1], -math.inf)  # the largest score so far
        l = torch.zeros_like(m)  # Σ exp(score − m) so far
        o = q.new_zeros(*q.shape[:-1], value.shape[-1])  # Σ exp(score − m) value so far
        for columns in tiles(S, how.key_tile):
            if how.is_causal and is_hidden(rows, columns, T, S):
                break
            k, v = key[..., columns, :].to(wide), value[..., columns, :].to(wide)
            scores, _ = tile_scores(q, k, rows, columns, T, S, how)
            new = torch.maximum(m, scores.amax(-1, keepdim=True))
            base = new.masked_fill(new == -math.inf, 0.0)  # -inf − -inf would be NaN
            p, shrink = torch.exp(scores - base), torch.exp(m - base)
            l = shrink * l + p.sum(-1, keepdim=True)
            o = shrink * o + p @ v
            m = new
        output[..., rows, :] = (o / l.masked_fill(l == 0, 1.0)).to(output.dtype)
        logsumexp[..., rows, :] = m + l.log()
    return output, logsumexp


def tiled_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    logsumexp: Tensor,
    how: Tiling,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the gradients of `tiled_forward`, with each tile's weights made again.

    Dao et al. 2022, appendix B.4. With P the weights, dP = dO Vᵀ and D the row sums
    of dO ⊙ O:  dV = Pᵀ dO,  dS = P ⊙ (dP − D),  dQ = scale · dS K,
    dK = scale · dSᵀ Q. `grad` is dO (B, G, R, T, Dv); all else is what went into
    `tiled_forward` and came out. Returns the gradients of query, key, value and bias
    (None without a bias), each in the shape of its tensor.
    """
    T, S = query.shape[-2], key.shape[-2]
    wide = logsumexp.dtype
    d_query, d_key, d_value = (
        torch.zeros_like(x, dtype=wide) for x in (query, key, value)
    )
    d_bias = None if how.bias is None else torch.zeros_like(how.bias, dtype=wide)
    row_sum = torch.zeros_like(logsumexp)  # D
    for rows in tiles(T, how.query_tile):
        weighted = grad[..., rows, :].to(wide) * output[..., rows, :].to(wide)
        row_sum[..., rows, :] = weighted.sum(-1, keepdim=True)
    for columns in tiles(S, how.key_tile):
        k, v = key[..., columns, :].to(wide), value[..., columns, :].to(wide)
        dk, dv = torch.zeros_like(k), torch.zeros_like(v)
        for rows in tiles(T, how.query_tile):
            if how.is_causal and is_hidden(rows, columns, T, S):
                continue
            q, g = query[..., rows, :].to(wide), grad[..., rows, :].to(wide)
            scores, slope = tile_scores(q, k, rows, columns, T, S, how)
            log = logsumexp[..., rows, :]
            p = torch.exp(scores - log.masked_fill(log == -math.inf, 0.0))  # dead: 0
            ds = p * (g @ v.mT - row_sum[..., rows, :])  # (B, G, R, rows, columns)
            if d_bias is not None:
                part = tile_of(d_bias, rows, columns)
                part += ds.sum_to_size(part.shape)
            ds = how.scale * ds * slope
            d_query[..., rows, :] += ds @ k
            dk += (ds.mT @ q).sum(2, keepdim=True)
            dv += (p.mT @ g).sum(2, keepdim=True)
        d_key[..., columns, :], d_value[..., columns, :] = dk, dv
    return d_query, d_key, d_value, d_bias


class _Kept(Protocol):
    how: Tiling
    saved_tensors: tuple[Tensor, ...]

    def save_for_backward(self, *tensors: Tensor | None) -> None: ...


class _Tiled(torch.autograd.Function):
    """What autograd keeps: inputs, output and logsumexp, and no weights."""

    @staticmethod
    def forward(
        ctx: _Kept, query: Tensor, key: Tensor, value: Tensor, bias: Mask, how: Tiling
    ) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):
            output, logsumexp = tiled_forward(query, key, value, how)
        ctx.save_for_backward(query, key, value, output, logsumexp, bias, how.attn_mask)
        ctx.how = how._replace(attn_mask=None, bias=None)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: _Kept, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, output, logsumexp, bias, attn_mask = ctx.saved_tensors
        how = ctx.how._replace(attn_mask=attn_mask, bias=bias)
        with torch.autocast(grad.device.type, enabled=False):
            *gradients, d_bias = tiled_backward(
                grad, query, key, value, output, logsumexp, how
            )
        if d_bias is not None:
            d_bias = d_bias.to(bias.dtype)
        return (*(d.to(query.dtype) for d in gradients), d_bias, None)


def tiled_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Mask = None,
    *,
    bias: Mask = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    query_tile: int = 64,
    key_tile: int = 64,
) -> Tensor:
    """Attend as `scaled_dot_product_attention` does, a tile of the scores at a time.

    FlashAttention, Dao et al. 2022 (arXiv:2205.14135). Written to be read: each tile is
    a few calls of torch, so that it needs little memory and is not fast.

    Tiles that `is_causal` hides are skipped. `query_tile` and `key_tile` are how many
    queries and keys a tile has; arguments and result are as there.
    """
    masks = {"attn_mask": attn_mask, "bias": bias}
    numbers = {"window": None, "scale": scale, "softcap": softcap}
    check_scores(query, key, value, is_causal=is_causal, masks=masks, **numbers)
    check_positive(query_tile=query_tile, key_tile=key_tile)
    (B, H, T, Dh), G = query.shape, key.shape[1]
    scale = 1 / math.sqrt(Dh) if scale is None else scale
    mask, added = (_with_groups(x, H, G) for x in (attn_mask, bias))
    how = Tiling(mask, added, is_causal, scale, softcap, query_tile, key_tile)
    by_group = query.reshape(B, G, H // G, T, Dh)
    apply: Callable[..., Tensor] = _Tiled.apply
    output = apply(by_group, key[:, :, None], value[:, :, None], added, how)
    return output.flatten(1, 2)  # (B, H, T, Dv)


def _with_groups(x: Mask, H: int, G: int) -> Mask:
    """Give a mask or a bias the axes (B, G, R, T, S), of size 1 where it has none."""
    if x is None:
        return None
    x = x[(None,) * (4 - x.ndim)]  # (B, H, T, S)
    groups = (G, H // G) if x.shape[1] == H else (1, 1)
    return x.reshape(x.shape[0], *groups, *x.shape[2:])
