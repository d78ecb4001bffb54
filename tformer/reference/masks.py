"""Masks in NumPy: boolean arrays in which True means "may attend".

B batch · H heads · T queries · S keys
"""

from functools import reduce

import numpy as np

from tformer.checks import check_bool, check_positive


def causal_mask(
    query_len: int, key_len: int | None = None, *, window: int | None = None
) -> np.ndarray:
    """Let query i see key j where p - window < j <= p, with p = i + S - T.

    Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762); the window is that of
    Beltagy et al. 2020, section 3.1 (arXiv:2004.05150), of the past only. With T != S
    the last query lines up with the last key. Returns bool (T, S).

    Example:
        >>> causal_mask(2, 3).astype(int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    S = query_len if key_len is None else key_len
    seen = np.tri(query_len, S, S - query_len, dtype=bool)  # (T, S)
    if window is not None:
        check_positive(window=window)
        seen &= ~np.tri(query_len, S, S - query_len - window, dtype=bool)
    return seen


def length_mask(lengths: np.ndarray, max_len: int | None = None) -> np.ndarray:
    """Hide padding: every query of row b sees key j where j < lengths[b].

    Returns bool (B, 1, 1, S), for all heads and queries; S is the longest length if
    `max_len` is not given.
    """
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths must hold integers, not {lengths.dtype}")
    if lengths.ndim != 1:
        raise ValueError(f"lengths must be (B,), not {lengths.shape}")
    shortest, longest = int(lengths.min()), int(lengths.max())
    max_len = longest if max_len is None else max_len
    if shortest < 0 or longest > max_len:
        raise ValueError(
            f"lengths ({shortest} to {longest}) must be in [0, max_len = {max_len}]"
        )
    return np.arange(max_len) < lengths[:, None, None, None]  # (B, 1, 1, S)


def combine_masks(*masks: np.ndarray | None) -> np.ndarray | None:
    """Allow what every mask allows: the logical and, broadcast; None allows all."""
    given = [mask for mask in masks if mask is not None]
    for mask in given:
        check_bool("a mask", mask)
    return reduce(np.logical_and, given) if given else None


def check_causal(attn_mask: np.ndarray | None, is_causal: bool) -> None:
    """Raise where an attention that is always causal is asked for something else."""
    if attn_mask is not None or not is_causal:
        raise ValueError("this attention is causal, and takes no attn_mask")
