"""Queries that grow with their position, in NumPy.

B batch · H heads · T length · Dh head_dim
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_above_0, check_positive


@dataclass(eq=False)
class QueryTemperature:
    """Multiply the query at position p by 1 + β log(1 + ⌊p / L⌋).

    As Llama 4 and Ministral 3 have it (arXiv:2601.08584).
    """

    beta: float  # β
    length: int  # L

    def __post_init__(self) -> None:
        check_above_0(beta=self.beta)
        check_positive(length=self.length)

    def __call__(self, x: np.ndarray, start: int = 0) -> np.ndarray:
        """Scale x (B, H, T, Dh) at positions start, start + 1, …; the same shape."""
        positions = np.arange(start, start + x.shape[2])  # (T,)
        factor = 1 + self.beta * np.log1p(positions // self.length)
        return x * factor.astype(x.dtype)[:, None]
