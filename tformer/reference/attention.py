"""Scaled dot-product attention in NumPy: softmax(Q Kᵀ / √d_k) V.

B batch · H heads · G key/value heads · T queries · S keys · Dh head_dim
Dv width of a value
"""

import math
from typing import Literal, overload

import numpy as np

from tformer.reference.masks import causal_mask, combine_masks


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Turn scores into shares: exp(x) / Σ exp(x), positive and of sum 1."""
    powers = np.exp(x - x.max(axis=axis, keepdims=True))  # the largest is exp(0) = 1
    return powers / powers.sum(axis=axis, keepdims=True)


def attention_weights(
    query: np.ndarray,
    key: np.ndarray,
    allowed: np.ndarray | None = None,
    *,
    bias: np.ndarray | None = None,
    scale: float,
    softcap: float | None = None,
) -> np.ndarray:
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
    scores = (query * scale) @ key.swapaxes(-2, -1)  # (B, H, T, S)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)

    # softmax of a row of -inf is 0/0: such a row goes through it as zeros.
    dead = scores.max(axis=-1, keepdims=True) == -np.inf  # (B, H, T, 1)
    weights = softmax(np.where(dead, 0.0, scores))
    return np.where(dead, 0.0, weights)


@overload
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
    dropout_p: float = 0.0,
    return_weights: Literal[False] = False,
) -> np.ndarray: ...
@overload
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
    dropout_p: float = 0.0,
    return_weights: Literal[True],
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
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
    dropout_p: float = 0.0,
    return_weights: bool,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...
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
    dropout_p: float = 0.0,
    return_weights: bool = False,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Attend: Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V.

    The twin of `tformer.scaled_dot_product_attention`: the same arguments, results and
    errors, without dropout. It holds all T × S scores.

    Args:
        query: (B, H, T, Dh), floating.
        key: (B, G, S, Dh); G divides H, and query head h reads key head h // (H / G).
        value: (B, G, S, Dv).
        attn_mask: bool, broadcastable to (B, H, T, S), True = may attend.
        bias: float, broadcastable to (B, H, T, S), added to the scaled scores.
        is_causal: hide later keys; the last query lines up with the last key.
        scale: factor of the scores; 1 / √Dh if not given.
        softcap: c > 0, which bounds each scaled score: c · tanh(score / c).
        dropout_p: 0.0, as nothing here is random.
        return_weights: also return the weights.

    Returns:
        (B, H, T, Dv), or with `return_weights` a pair of it and (B, H, T, S).

    Raises:
        TypeError: an argument is not an array, the mask is not boolean, the bias not
            floating, or dtypes differ.
        ValueError: shapes do not match, H is not a multiple of G, a length is 0,
            `softcap` is not above 0, or `dropout_p` is not 0.
    """
    _check_attention(query, key, value, attn_mask, bias, softcap, dropout_p)
    (_, H, T, Dh), (_, G, S, _) = query.shape, key.shape
    scale = 1.0 / math.sqrt(Dh) if scale is None else float(scale)
    allowed = combine_masks(attn_mask, causal_mask(T, S) if is_causal else None)

    q, k, v = (_at_least_float32(x) for x in (query, key, value))
    k = np.repeat(k, H // G, axis=1)  # (B, H, S, Dh)
    v = np.repeat(v, H // G, axis=1)  # (B, H, S, Dv)
    weights = attention_weights(q, k, allowed, bias=bias, scale=scale, softcap=softcap)
    output = weights @ v  # (B, H, T, Dv)
    output, weights = output.astype(query.dtype), weights.astype(query.dtype)
    return (output, weights) if return_weights else output


def _at_least_float32(x: np.ndarray) -> np.ndarray:
    """Half precision is for storage: products are summed in float32 or better."""
    return x.astype(np.promote_types(x.dtype, np.float32), copy=False)


def _check_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None,
    bias: np.ndarray | None,
    softcap: float | None,
    dropout_p: float,
) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{name} must be a NumPy array, not {type(x).__name__}")
        if x.ndim != 4:
            raise ValueError(
                f"{name} must be (batch, heads, length, width), not {x.shape}"
            )
        if 0 in x.shape:
            raise ValueError(f"{name} is empty: its shape is {x.shape}")
        if x.dtype.kind != "f":
            raise TypeError(f"{name} must be floating, not {x.dtype}")
        if x.dtype != query.dtype:
            raise TypeError(f"{name} is {x.dtype} but query is {query.dtype}")
    (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
    both = f"query is {query.shape}, key is {key.shape}"
    if key.shape[3] != Dh:
        raise ValueError(f"key has head_dim {key.shape[3]} but query has {Dh}: {both}")
    if key.shape[0] != B:
        raise ValueError(f"key has batch {key.shape[0]} but query has {B}: {both}")
    if value.shape[:3] != key.shape[:3]:
        raise ValueError(
            "value and key must agree in batch, heads and length: "
            f"value is {value.shape}, key is {key.shape}"
        )
    if H % G:
        raise ValueError(
            f"query has {H} heads, which is not a multiple of key's {G}: {both}"
        )
    for name, added, kind in (("attn_mask", attn_mask, "b"), ("bias", bias, "f")):
        if added is None:
            continue
        if not isinstance(added, np.ndarray):
            raise TypeError(f"{name} must be a NumPy array, not {type(added).__name__}")
        if added.dtype.kind != kind:
            raise TypeError(
                f"attn_mask must be bool (True = may attend), not {added.dtype}; "
                "what is added to the scores is `bias`"
                if kind == "b"
                else f"bias must be floating, not {added.dtype}; a mask is `attn_mask`"
            )
        full = (B, H, T, S)
        pairs = zip(reversed(added.shape), reversed(full), strict=False)
        if added.ndim > 4 or any(size not in (1, whole) for size, whole in pairs):
            raise ValueError(
                f"{name} must broadcast to (B, H, T, S) = {full}, not {added.shape}"
            )
    if softcap is not None and not softcap > 0:
        raise ValueError(f"softcap ({softcap}) must be above 0")
    if dropout_p != 0:
        raise ValueError(
            f"dropout_p ({dropout_p}) must be 0: the NumPy twin has no dropout"
        )
