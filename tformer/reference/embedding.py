"""Token embedding in NumPy: from ids to vectors, and back to logits.

B batch · T length · D d_model · V vocabulary
"""

import math

import numpy as np

from tformer.reference.linear import linear
from tformer.reference.weights import Weights, only_weight


class TokenEmbedding:
    """Look up a vector for each token, times √D; its transpose makes logits.

    Vaswani et al. 2017, section 3.4. The twin of `tformer.TokenEmbedding`.

    Args:
        weights: "weight" (V, D).

    Raises:
        ValueError: a name or a shape is wrong.
    """

    def __init__(self, weights: Weights) -> None:
        self.weight = only_weight(weights, "V", "D")
        self.vocab_size, self.d_model = self.weight.shape

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Look up ids, integer (B, T), each in [0, V); returns (B, T, D).

        Raises:
            TypeError: the ids are not an array of integers.
            ValueError: an id is outside the vocabulary, or the sequence is empty.
        """
        _check_ids(ids, self.vocab_size)
        return self.weight[ids] * math.sqrt(self.d_model)

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Score every token for x (B, T, D) by the same matrix; returns (B, T, V)."""
        return linear(x, self.weight)


def _check_ids(ids: np.ndarray, vocab_size: int) -> None:
    if not isinstance(ids, np.ndarray):
        raise TypeError(f"ids must be a NumPy array, not {type(ids).__name__}")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, not {ids.dtype}")
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(f"ids must be (batch, length) and not empty, not {ids.shape}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"ids must be in [0, vocab_size = {vocab_size}), "
            f"but they reach from {low} to {high}"
        )
