"""Attention in tiles in NumPy: exact, and without all T × S scores at once.

B batch · H heads · G key/value heads · R = H / G queries of a group · T queries ·
S keys · Dh head_dim · Dv width of a value

What is read with `x[..., rows, :]` and written with `x[..., rows, :] = …` is what a
kernel moves between slow and fast memory; all else has the size of a tile.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tformer.checks import check_positive
from tformer.reference.attention import check_attention, check_keys_values


class Tiling(NamedTuple):
    """What makes the scores of a tile, and how large a tile is.

    `attn_mask` and `bias` have five axes that broadcast to (B, G, R, T, S), or are
    None; the rest is as in `tiled_attention`.
    """

    attn_mask: np.ndarray | None
    bias: np.ndarray | None
    is_causal: bool
    scale: float
    softcap: float | None
    query_tile: int
    key_tile: int


def tiles(length: int, size: int) -> Iterator[slice]:
    """Cut positions 0 to length − 1 into slices of `size`; the last may be shorter."""
    for begin in range(0, length, size):
        yield slice(begin, min(begin + size, length))


def tile_of(x: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
    """Take a tile of a mask or a bias, which may have one row or column for all."""
    everything = slice(None)
    return x[
        ...,
        rows if x.shape[-2] > 1 else everything,
        columns if x.shape[-1] > 1 else everything,
    ]


def is_hidden(rows: slice, columns: slice, T: int, S: int) -> bool:
    """Say whether every key of a tile lies in the future of every query."""
    return columns.start > rows.stop - 1 + S - T


def tile_scores(
    q: np.ndarray,
    k: np.ndarray,
    rows: slice,
    columns: slice,
    T: int,
    S: int,
    how: Tiling,
) -> tuple[np.ndarray, np.ndarray | float]:
    """Compute the scores of one tile: scale · q kᵀ, capped, with bias, then masked.

    Args:
        q: (..., rows, Dh).
        k: (..., columns, Dh).
        rows: which queries these are, of T.
        columns: which keys these are, of S.
        T: number of all queries.
        S: number of all keys.
        how: see `Tiling`.

    Returns:
        The scores (..., rows, columns), -inf where hidden; and the slope of the cap
        there, 1 − (capped / softcap)², which the backward pass needs.
    """
    scores = (how.scale * q) @ k.swapaxes(-2, -1)  # (..., rows, columns)
    slope: np.ndarray | float = 1.0
    if how.softcap is not None:
        capped = np.tanh(scores / how.softcap)
        scores, slope = how.softcap * capped, 1 - capped**2
    if how.bias is not None:
        scores += tile_of(how.bias, rows, columns)
    if how.attn_mask is not None:
        np.copyto(scores, -np.inf, where=~tile_of(how.attn_mask, rows, columns))
    if how.is_causal and columns.stop - 1 > rows.start + S - T:
        newest = np.arange(rows.start, rows.stop) + S - T
        position = np.arange(columns.start, columns.stop)
        np.copyto(scores, -np.inf, where=position > newest[:, None])
    return scores, slope


def tiled_forward(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, how: Tiling
) -> tuple[np.ndarray, np.ndarray]:
    """Attend tile by tile, with softmax's maximum and sum kept up to date.

    Dao et al. 2022, algorithm 1 (arXiv:2205.14135), with the loops in the order of
    Dao 2023 (arXiv:2307.08691).

    Args:
        query: (B, G, R, T, Dh).
        key: (B, G, 1, S, Dh).
        value: (B, G, 1, S, Dv).
        how: see `Tiling`.

    Returns:
        The output (B, G, R, T, Dv), zeros where a query may attend to nothing; and
        log Σ exp(score) of each query, (B, G, R, T, 1), -inf there.
    """
    T, S = query.shape[-2], key.shape[-2]
    wide = np.result_type(query, key, np.float32)  # half precision is for storage
    width = value.shape[-1]
    output = np.zeros_like(query, shape=(*query.shape[:-1], width))
    logsumexp = np.zeros_like(query, dtype=wide, shape=(*query.shape[:-1], 1))
    for rows in tiles(T, how.query_tile):
        q = query[..., rows, :].astype(wide)
        m = np.full((*q.shape[:-1], 1), -np.inf, wide)  # the largest score so far
        l = np.zeros_like(m)  # Σ exp(score − m) so far
        o = np.zeros((*q.shape[:-1], width), wide)  # Σ exp(score − m) value so far
        for columns in tiles(S, how.key_tile):
            if how.is_causal and is_hidden(rows, columns, T, S):
                break
            k = key[..., columns, :].astype(wide, copy=False)
            v = value[..., columns, :].astype(wide, copy=False)
            scores, _ = tile_scores(q, k, rows, columns, T, S, how)
            new = np.maximum(m, scores.max(-1, keepdims=True))
            base = np.where(new == -np.inf, 0.0, new)  # -inf − -inf would be NaN
            p = np.exp(np.subtract(scores, base, out=scores), out=scores)
            shrink = np.exp(m - base)
            l = shrink * l + p.sum(-1, keepdims=True)
            o = shrink * o + p @ v
            m = new
        total = np.where(l == 0, 1.0, l)
        output[..., rows, :] = o / total
        logsumexp[..., rows, :] = np.where(l == 0, -np.inf, m + np.log(total))
    return output, logsumexp


def tiled_backward(
    grad: np.ndarray,
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    output: np.ndarray,
    logsumexp: np.ndarray,
    how: Tiling,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Compute the gradients of `tiled_forward`, with each tile's weights made again.

    Dao et al. 2022, appendix B.4. With P the weights, dP = dO Vᵀ and D the row sums
    of dO ⊙ O:  dV = Pᵀ dO,  dS = P ⊙ (dP − D),  dQ = scale · dS K,
    dK = scale · dSᵀ Q.

    Args:
        grad: dO (B, G, R, T, Dv), the gradient of the loss for the output.
        query: (B, G, R, T, Dh), floating.
        key: (B, G, 1, S, Dh).
        value: (B, G, 1, S, Dv).
        output: what `tiled_forward` returned.
        logsumexp: what `tiled_forward` returned.
        how: see `Tiling`.

    Returns:
        The gradients of query, key, value and bias (None without a bias), each in the
        shape of its array.
    """
    T, S = query.shape[-2], key.shape[-2]
    d_query, d_key, d_value = (np.zeros_like(x) for x in (query, key, value))
    d_bias = None if how.bias is None else np.zeros_like(how.bias)
    row_sum = np.zeros_like(logsumexp)  # D
    for rows in tiles(T, how.query_tile):
        row_sum[..., rows, :] = np.sum(
            grad[..., rows, :] * output[..., rows, :], axis=-1, keepdims=True
        )
    for columns in tiles(S, how.key_tile):
        k, v = key[..., columns, :], value[..., columns, :]
        dk, dv = np.zeros_like(k), np.zeros_like(v)
        for rows in tiles(T, how.query_tile):
            if how.is_causal and is_hidden(rows, columns, T, S):
                continue
            q, g, log = query[..., rows, :], grad[..., rows, :], logsumexp[..., rows, :]
            scores, slope = tile_scores(q, k, rows, columns, T, S, how)
            p = np.exp(scores - np.where(log == -np.inf, 0.0, log))  # dead rows: 0
            ds = p * (g @ v.swapaxes(-2, -1) - row_sum[..., rows, :])
            if d_bias is not None:
                part = tile_of(d_bias, rows, columns)
                shared = tuple(i for i, n in enumerate(part.shape) if n < ds.shape[i])
                part += ds.sum(axis=shared, keepdims=True)
            ds = how.scale * ds * slope  # (B, G, R, rows, columns)
            d_query[..., rows, :] += ds @ k
            dk += (ds.swapaxes(-2, -1) @ q).sum(2, keepdims=True)
            dv += (p.swapaxes(-2, -1) @ g).sum(2, keepdims=True)
        d_key[..., columns, :], d_value[..., columns, :] = dk, dv
    return d_query, d_key, d_value, d_bias


def tiled_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    query_tile: int = 64,
    key_tile: int = 64,
) -> np.ndarray:
    """Attend as `scaled_dot_product_attention` does, a tile of the scores at a time.

    FlashAttention, Dao et al. 2022 (arXiv:2205.14135).

    Args:
        query: (B, H, T, Dh).
        key: (B, G, S, Dh); G divides H.
        value: (B, G, S, Dv), floating.
        attn_mask: bool, True = may attend; (T, S), or four axes that broadcast to
            (B, H, T, S).
        bias: float, of such a shape, added to the scaled scores.
        is_causal: hide later keys; the last query lines up with the last key. Tiles
            that lie in the future are skipped.
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c > 0, which bounds each scaled score: c · tanh(score / c).
        query_tile: how many queries a tile has.
        key_tile: how many keys a tile has.

    Returns:
        (B, H, T, Dv); zeros where a query may attend to nothing.
    """
    check_attention(query, key, attn_mask, bias, softcap)
    check_keys_values(key, value)
    check_positive(query_tile=query_tile, key_tile=key_tile)
    (B, H, T, Dh), G = query.shape, key.shape[1]
    scale = 1.0 / math.sqrt(Dh) if scale is None else scale
    mask, added = (_with_groups(x, H, G) for x in (attn_mask, bias))
    how = Tiling(mask, added, is_causal, scale, softcap, query_tile, key_tile)
    by_group = query.reshape(B, G, H // G, T, Dh)
    output, _ = tiled_forward(by_group, key[:, :, None], value[:, :, None], how)
    return output.reshape(B, H, T, value.shape[-1])


def _with_groups(x: np.ndarray | None, H: int, G: int) -> np.ndarray | None:
    """Give a mask or a bias the axes (B, G, R, T, S), of size 1 where it has none."""
    if x is None:
        return None
    x = x[(None,) * (4 - x.ndim)]  # (B, H, T, S)
    groups = (G, H // G) if x.shape[1] == H else (1, 1)
    return x.reshape(x.shape[0], *groups, *x.shape[2:])
