"""Masks in NumPy: boolean arrays in which True means "may attend".

B batch · T queries · S keys
"""

from functools import reduce

import numpy as np

from tformer.checks import check_positive


def causal_mask(query_len: int, key_len: int | None = None) -> np.ndarray:
    """Let query i see key j where j <= i + (S - T): itself and what came before.

    With T != S the last query lines up with the last key.

    Args:
        query_len: number of queries T.
        key_len: number of keys S; T if not given.

    Returns:
        bool (T, S), True where the query may attend to the key.

    Raises:
        ValueError: a length is below 1.

    Example:
        >>> causal_mask(2, 3).astype(int).tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    key_len = query_len if key_len is None else key_len
    check_positive(query_len=query_len, key_len=key_len)
    return np.tri(query_len, key_len, key_len - query_len, dtype=bool)  # (T, S)


def sliding_window_mask(
    query_len: int, window: int, key_len: int | None = None
) -> np.ndarray:
    """Let a query see the `window` newest keys of its past, itself included.

    Args:
        query_len: number of queries T.
        window: how many keys a query sees at most; 1 is itself alone.
        key_len: number of keys S; T if not given.

    Returns:
        bool (T, S), True where the query may attend to the key.

    Raises:
        ValueError: a length or the window is below 1.
    """
    check_positive(window=window)
    causal = causal_mask(query_len, key_len)  # (T, S)
    too_old = np.tril(causal, causal.shape[1] - query_len - window)
    return causal & ~too_old  # (T, S)


def length_mask(lengths: np.ndarray, max_len: int | None = None) -> np.ndarray:
    """Turn lengths into a `key_mask`: position j of row b is real where j < lengths[b].

    Args:
        lengths: integer (B,), each in [0, max_len].
        max_len: width S of the mask; the longest length if not given.

    Returns:
        bool (B, S), True at real tokens, False at padding.

    Raises:
        TypeError: `lengths` is no array, or does not hold integers.
        ValueError: `lengths` is not (B,), or a length is below 0 or above `max_len`.
    """
    _check_lengths(lengths)
    shortest, longest = int(lengths.min()), int(lengths.max())
    max_len = longest if max_len is None else max_len
    check_positive(max_len=max_len)
    if shortest < 0 or longest > max_len:
        raise ValueError(
            f"lengths ({shortest} to {longest}) must be in [0, max_len = {max_len}]"
        )
    return np.arange(max_len) < lengths[:, None]  # (B, S)


def combine_masks(*masks: np.ndarray | None) -> np.ndarray | None:
    """Allow what every mask allows: the logical and, broadcast; None allows everything.

    Args:
        masks: bool arrays whose shapes broadcast together, or None.

    Returns:
        bool, the broadcast shape; None if every mask is None.

    Raises:
        TypeError: a mask is not a boolean array.
        ValueError: the shapes do not broadcast.
    """
    given = [mask for mask in masks if mask is not None]
    _check_masks(given)
    return reduce(np.logical_and, given) if given else None


def check_key_mask(key_mask: np.ndarray, batch: int, key_len: int) -> np.ndarray:
    """Check a `key_mask` (B, S) and give it the shape of scores.

    Returns:
        bool (B, 1, 1, S), which broadcasts over heads and queries.

    Raises:
        TypeError: it is not a boolean array.
        ValueError: it is not (B, S).
    """
    if not isinstance(key_mask, np.ndarray):
        raise TypeError(
            f"key_mask must be a NumPy array, not {type(key_mask).__name__}"
        )
    if key_mask.dtype != bool:
        raise TypeError(
            f"key_mask must be bool (True = a real token), not {key_mask.dtype}"
        )
    if key_mask.shape != (batch, key_len):
        raise ValueError(
            f"key_mask must be (B, S) = ({batch}, {key_len}), not {key_mask.shape}"
        )
    return key_mask[:, None, None, :]  # (B, 1, 1, S)


def _check_lengths(lengths: np.ndarray) -> None:
    if not isinstance(lengths, np.ndarray):
        raise TypeError(f"lengths must be a NumPy array, not {type(lengths).__name__}")
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths must hold integers, not {lengths.dtype}")
    if lengths.ndim != 1 or not lengths.size:
        raise ValueError(f"lengths must be (B,) with B >= 1, not {lengths.shape}")


def _check_masks(masks: list[np.ndarray]) -> None:
    for mask in masks:
        if not isinstance(mask, np.ndarray):
            raise TypeError(f"a mask must be a NumPy array, not {type(mask).__name__}")
        if mask.dtype != bool:
            raise TypeError(
                f"a mask must be bool (True = may attend), not {mask.dtype}"
            )
    shapes = [mask.shape for mask in masks]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"masks of shapes {' and '.join(map(str, shapes))} do not broadcast"
        ) from None
