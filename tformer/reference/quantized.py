"""Rounding to small whole numbers in NumPy.

I inputs · g numbers of a group
"""

import numpy as np


def quantize(
    x: np.ndarray, bits: int = 8, group_size: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Round to whole numbers: s = max |x| / (2^(bits − 1) − 1), codes = round(x / s).

    Of x (..., I), I numbers or g of a group. Returns codes, int8 (..., I), and scales
    (..., I / g) in the dtype of x.
    """
    most = 2 ** (bits - 1) - 1
    groups = x.reshape(*x.shape[:-1], -1, group_size or x.shape[-1])
    scales = abs(groups).max(-1) / x.dtype.type(most)  # (..., I / g)
    codes = np.rint(groups / np.where(scales == 0, 1, scales)[..., None])
    return codes.clip(-most, most).reshape(x.shape).astype(np.int8), scales


def dequantize(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Multiply codes (..., I) by the scales (..., I / g) of their groups: (..., I)."""
    groups = codes.reshape(*scales.shape, -1).astype(scales.dtype)
    return (groups * scales[..., None]).reshape(codes.shape)
