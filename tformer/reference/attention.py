"""Scaled dot-product attention in NumPy: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim ·
Dv width of a value
"""

import math

import numpy as np

from tformer.reference.blocks import attend_in_blocks
from tformer.reference.masks import (
    causal_mask,
    check_bool,
    check_fits,
    combine_masks,
)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn scores into weights: exp(x) / Σ exp(x), positive and of sum 1."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True))  # the largest is exp(0) = 1
    return powers / powers.sum(axis=axis, keepdims=True)


def attention_weights(
    query: np.ndarray,
    key: np.ndarray,
    attn_mask: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
) -> np.ndarray:
    """Say how much each query takes from each key: softmax(Q Kᵀ / √d_k).

    Vaswani et al. 2017, section 3.2.1 (arXiv:1706.03762).

    Args:
        query: (B, H, T, Dh), floating.
        key: (B, G, S, Dh); G divides H, and query head h reads key head h // (H / G)
            (grouped-query attention, arXiv:2305.13245).
        attn_mask: bool, True = may attend: (T, S), a row for each query, or with four
            axes and broadcastable to (B, H, T, S). A mask (B, S) of padding, a row for
            each sequence, is not for here: `length_mask` makes (B, 1, 1, S).
        bias: float, of such a shape, added to the scaled scores.
        is_causal: hide later keys; the last query lines up with the last key.
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c > 0, which bounds each scaled score: c · tanh(score / c)
            (Gemma 2, arXiv:2408.00118); before the bias is added.

    Returns:
        (B, H, T, S); rows sum to 1, or are 0 where a query may attend to nothing.

    Raises:
        TypeError: the mask is not boolean, or another array not floating.
        ValueError: batches or heads do not match, the mask or the bias has another
            shape, or `softcap` is not above 0 and finite.
    """
    check_attention(query, key, attn_mask, bias, softcap)
    (H, T, Dh), S = query.shape[1:], key.shape[2]
    scale = 1.0 / math.sqrt(Dh) if scale is None else scale
    allowed = combine_masks(attn_mask, causal_mask(T, S) if is_causal else None)
    key = per_query_head(key, H)  # (B, H, S, Dh)

    # Half precision is for storage: its products are summed in float32.
    wide = np.result_type(query, key, np.float32)
    scores = scale * np.matmul(query, key.swapaxes(-2, -1), dtype=wide)  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)

    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.max(axis=-1, keepdims=True) == -np.inf  # (B, H, T, 1)
    weights = softmax(np.where(dead, 0.0, scores))
    return np.where(dead, 0.0, weights).astype(query.dtype)  # (B, H, T, S)


def mix_values(weights: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Average values (B, G, S, Dv) by weights (B, H, T, S): (B, H, T, Dv)."""
    return weights @ per_query_head(value, weights.shape[1])


def per_query_head(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Repeat each key/value head for its group of queries: (B, G, …) to (B, H, …)."""
    repeats = num_heads // x.shape[1]
    return x if repeats == 1 else np.repeat(x, repeats, axis=1)


def scaled_dot_product_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
) -> np.ndarray:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    Vaswani et al. 2017, equation 1 (arXiv:1706.03762). It takes some queries at a
    time, and has no dropout. The further arguments are those of `attention_weights`.

    Args:
        query: (B, H, T, Dh).
        key: (B, G, S, Dh).
        value: (B, G, S, Dv), floating.
        attn_mask: bool, True = may attend.
        bias: float, added to the scaled scores.
        is_causal: hide later keys.
        scale: factor of the scores.
        softcap: bound of the scores.

    Returns:
        (B, H, T, Dv); zeros where a query may attend to nothing.
    """
    check_keys_values(key, value)
    check_attention(query, key, attn_mask, bias, softcap)
    # The same as mix_values(attention_weights(…), value), without all scores at once.
    return attend_in_blocks(
        query,
        per_query_head(key, query.shape[1]),
        per_query_head(value, query.shape[1]),
        attn_mask,
        bias,
        is_causal,
        1.0 / math.sqrt(query.shape[3]) if scale is None else scale,
        softcap,
    )  # (B, H, T, Dv)


def check_attention(
    query: np.ndarray,
    key: np.ndarray,
    attn_mask: np.ndarray | None,
    bias: np.ndarray | None,
    softcap: float | None,
) -> None:
    """Refuse what NumPy would compute all the same, into something else."""
    for name, x in (("query", query), ("key", key), ("bias", bias)):
        if x is not None and x.dtype.kind != "f":
            raise TypeError(f"{name} must be floating, not {x.dtype}")
    (B, H, T, _), (key_batch, G, S, _) = query.shape, key.shape
    both = f"query is {query.shape}, key is {key.shape}"
    if key_batch != B:
        raise ValueError(f"key has batch {key_batch} but query has {B}: {both}")
    if H % G:
        raise ValueError(
            f"query has {H} heads, which is not a multiple of key's {G}: {both}"
        )
    if attn_mask is not None:
        check_bool("attn_mask", attn_mask)
    for name, x in (("attn_mask", attn_mask), ("bias", bias)):
        if x is not None:
            check_fits(name, x, (B, H, T, S))
    if softcap is not None and not 0 < softcap < math.inf:
        raise ValueError(f"softcap ({softcap}) must be above 0 and finite")


def check_keys_values(key: np.ndarray, value: np.ndarray) -> None:
    """Refuse values that do not belong to the keys."""
    if value.dtype.kind != "f":
        raise TypeError(f"value must be floating, not {value.dtype}")
    if value.shape[:3] != key.shape[:3]:
        raise ValueError(
            "value and key must agree in batch, heads and length: "
            f"value is {value.shape}, key is {key.shape}"
        )
