"""Checks that several modules of the NumPy twin share."""

from collections.abc import Mapping

import numpy as np


# --8<-- [start:check_sequence]
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
    # --8<-- [end:check_sequence]


# --8<-- [start:parts]
def parts(
    weights: Mapping[str, np.ndarray], *names: str, optional: tuple[str, ...] = ()
) -> list[dict[str, np.ndarray]]:
    """Cut weights into those of each part: {"norm.bias": b} into [{"bias": b}].

    Args:
        weights: arrays by the names of a torch module's `state_dict`.
        names: the parts that there must be.
        optional: further parts that there may be.

    Returns:
        for each of `names`, then of `optional`, its weights; empty if there are none.

    Raises:
        ValueError: a part is missing, or there are weights of another part.
    """
    found = {name.partition(".")[0] for name in weights}
    missing, unknown = set(names) - found, found - {*names, *optional}
    if missing or unknown:
        raise ValueError(
            f"weights must be those of {', '.join(names)}"
            + "".join(f" (and {name}, or not)" for name in optional)
            + f": missing {sorted(missing) or 'none'}, unknown {sorted(unknown) or 'none'}"
        )
    return [
        {
            key.partition(".")[2]: array
            for key, array in weights.items()
            if key.partition(".")[0] == name
        }
        for name in (*names, *optional)
    ]
    # --8<-- [end:parts]
