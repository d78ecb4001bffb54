"""MXFP4 in NumPy: numbers of four bits, 32 with a power of two.

I numbers, a multiple of 32
"""

import numpy as np

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BLOCK, BIAS = 32, 127


def quantize_mxfp4(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give each 32 of x (..., I) the scale 2^(⌊log₂ max |x|⌋ − 2); round to E2M1.

    Returns codes, uint8 (..., I) from 0 to 15, and scales, uint8 (..., I / 32): E8M0.
    """
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, BLOCK)  # (..., I / 32, 32)
    largest = abs(blocks).max(-1, keepdims=True)
    exponent = np.where(largest == 0, -BIAS, np.frexp(largest)[1] - 3).clip(-BIAS)
    size = np.ldexp(abs(blocks), -exponent)
    step = np.where(size < 2, 0.5, np.where(size < 4, 1, 2))
    rounded = (np.rint(size / step) * step).clip(max=6)
    codes = np.searchsorted(E2M1, rounded) + 8 * np.signbit(blocks)
    scales = (exponent[..., 0] + BIAS).astype(np.uint8)
    return codes.reshape(x.shape).astype(np.uint8), scales


def dequantize_mxfp4(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Read codes (..., I) and scales (..., I / 32): float32 (..., I)."""
    both_signs = np.array([*E2M1, *(-x for x in E2M1)], np.float32)
    blocks = both_signs[codes].reshape(*scales.shape, BLOCK)
    exponent = scales[..., None].astype(np.int32) - BIAS
    return np.ldexp(blocks, exponent).reshape(codes.shape)
