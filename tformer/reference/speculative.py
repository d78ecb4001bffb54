"""The rule of speculative decoding in NumPy.

V vocabulary
"""

import numpy as np


def acceptance(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Compute min(1, p / q): how probably a token that q proposed is kept; all (V,)."""
    proposed = q > 0
    return np.where(proposed, np.minimum(1, p / np.where(proposed, q, 1)), 1)


def after_rejection(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Compute (p − q)₊ / Σ (p − q)₊, from which is drawn where a token was not kept."""
    missing = np.maximum(p - q, 0)
    return missing / missing.sum() if missing.any() else p
