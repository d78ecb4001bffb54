"""Scaled dot-product attention in NumPy: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim ·
Dv width of a value
"""

import math
from typing import Any

import numpy as np

from tformer.checks import check_scores
from tformer.reference.masks import causal_mask


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Compute exp(x) / Σ exp(x): positive numbers of sum 1."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True))  # the largest is exp(0) = 1
    return powers / powers.sum(axis=axis, keepdims=True)


def attention_weights(
    query: np.ndarray,
    key: np.ndarray,
    attn_mask: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    is_causal: bool = False,
    window: int | None = None,
    sinks: np.ndarray | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> np.ndarray:
    """Compute how much each query takes from each key: softmax(scale · Q Kᵀ).

    Vaswani et al. 2017, section 3.2.1 (arXiv:1706.03762). Query (B, H, T, Dh), key
    (B, G, S, Dh), a boolean mask and a float bias, (T, S) or four axes that broadcast
    to (B, H, T, S). What each argument does, and what is refused, is as in
    `tformer.attention_weights`. Returns (B, H, T, S), float32 or wider.
    """
    masks = {"attn_mask": attn_mask, "bias": bias}
    numbers = {"window": window, "scale": scale, "softcap": softcap}
    check_scores(query, key, key, is_causal=is_causal, masks=masks, **numbers)
    (H, T, Dh), S = query.shape[1:], key.shape[2]
    scale = 1.0 / math.sqrt(Dh) if scale is None else float(scale)
    wide = np.result_type(query, key, np.float32)  # half precision is for storage
    key = per_query_head(key, H).astype(wide)  # (B, H, S, Dh)
    scores = (scale * query.astype(wide)) @ key.swapaxes(-2, -1)  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias.astype(wide)
    if attn_mask is not None:
        scores = np.where(attn_mask, scores, -np.inf)
    if is_causal:
        scores = np.where(causal_mask(T, S, window=window), scores, -np.inf)

    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.max(axis=-1, keepdims=True) == -np.inf  # (B, H, T, 1)
    scores = np.where(dead, 0.0, scores)
    if sinks is None:
        weights = softmax(scores)
    else:
        sink = np.broadcast_to(sinks[:, None, None].astype(wide), dead.shape)
        weights = softmax(np.concatenate((sink, scores), axis=-1))[..., 1:]
    return np.where(dead, 0.0, weights)  # (B, H, T, S)


def per_query_head(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Repeat each key/value head for its group of queries: (B, G, …) to (B, H, …)."""
    repeats = num_heads // x.shape[1]
    return x if repeats == 1 else np.repeat(x, repeats, axis=1)


def scaled_dot_product_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None = None,
    **options: Any,
) -> np.ndarray:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Vaswani et al. 2017, equation 1 (arXiv:1706.03762). `value` is (B, G, S, Dv); mask
    and options are those of `attention_weights`. Returns (B, H, T, Dv), zeros where a
    query may attend to nothing. It holds all T × S scores; `attention_in_blocks` does
    not.
    """
    check_scores(query, key, value, is_causal=False, masks={}, window=None)
    weights = attention_weights(query, key, attn_mask, **options)
    output = weights @ per_query_head(value, query.shape[1])  # (B, H, T, Dv)
    return output.astype(np.result_type(query, value))


def attention_in_blocks(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
    queries_at_a_time: int = 96,
) -> np.ndarray:
    """Attend as `scaled_dot_product_attention` does, for some queries at a time.

    One head and one block of queries after the other, so that few scores are held, and
    each step writes over the one before. Later keys, which no query of the block may
    see, are not computed. The arguments are those of `attention_weights`.
    """
    masks = {"attn_mask": attn_mask, "bias": bias}
    numbers = {"window": None, "scale": scale, "softcap": softcap}
    check_scores(query, key, value, is_causal=is_causal, masks=masks, **numbers)
    (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
    wide = np.result_type(query, key, np.float32)  # half precision is for storage
    scale = 1.0 / math.sqrt(Dh) if scale is None else float(scale)
    mask, added = (
        x if x is None else np.broadcast_to(x, (B, H, T, S)) for x in (attn_mask, bias)
    )
    output = np.zeros((B, H, T, value.shape[3]), np.result_type(query, value))
    memory = np.empty(queries_at_a_time * S, wide)  # of the scores, used again
    blind = max(0, T - S) if is_causal else 0  # the first queries, before any key
    future = ~causal_mask(queries_at_a_time)
    for b, h in np.ndindex(B, H):
        keys = np.ascontiguousarray(key[b, h * G // H].T, wide)  # (Dh, S)
        values = value[b, h * G // H].astype(wide, copy=False)  # (S, Dv)
        for begin in range(blind, T, queries_at_a_time):
            rows = slice(begin, min(begin + queries_at_a_time, T))
            t = rows.stop - begin
            s = S - (T - rows.stop) if is_causal else S  # the keys that it may see
            scores = memory[: t * s].reshape(t, s)
            queries = scale * query[b, h, rows].astype(wide, copy=False)  # (t, Dh)
            np.matmul(queries, keys[:, :s], out=scores)
            if softcap is not None:
                scores = softcap * np.tanh(scores / softcap)
            if added is not None:
                scores += added[b, h, rows, :s]
            if mask is not None:
                np.copyto(scores, -np.inf, where=~mask[b, h, rows, :s])
            if is_causal:  # of the last t keys, a query sees those up to its own
                np.copyto(scores[:, s - t :], -np.inf, where=future[:t, :t])
            largest = scores.max(axis=-1, keepdims=True)  # (t, 1)
            scores -= np.where(largest == -np.inf, 0, largest)  # -inf − -inf is NaN
            powers = np.exp(scores, out=scores)
            total = powers @ np.ones((s, 1), wide)  # (t, 1); a product is the fastest
            output[b, h, rows] = powers @ values[:s] / np.where(total == 0, 1, total)
    return output  # (B, H, T, Dv)
