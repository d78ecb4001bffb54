"""Checks that several modules of the NumPy twin share."""

import numpy as np


def check_sequence(d_model: int, **sequences: np.ndarray) -> None:
    """Raise unless every array is (batch, length, d_model), and not empty.

    Raises:
        TypeError: one is not an array.
        ValueError: one has another shape, or a length of 0.
    """
    for name, x in sequences.items():
        if not isinstance(x, np.ndarray):
            raise TypeError(f"{name} must be a NumPy array, not {type(x).__name__}")
        if x.ndim != 3 or x.shape[-1] != d_model:
            raise ValueError(
                f"{name} must be (batch, length, d_model = {d_model}), not {x.shape}"
            )
        if 0 in x.shape:
            raise ValueError(f"{name} is an empty sequence: its shape is {x.shape}")
