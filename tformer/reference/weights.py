"""Weights by name: what the twin's classes take, and how they share it out.

The names are those of the torch module's `state_dict`: "layers.0.norm.bias" is the bias
of the norm of the first layer. A name too many would be left out silently, so each
class says which it takes.
"""

from collections.abc import Mapping

import numpy as np

Weights = Mapping[str, np.ndarray]


def parts(
    weights: Weights, *names: str, optional: tuple[str, ...] = ()
) -> dict[str, dict[str, np.ndarray]]:
    """Share weights out to parts: {"norm.bias": b} becomes {"norm": {"bias": b}}.

    Args:
        weights: arrays by name.
        names: the parts that there must be.
        optional: further parts that there may be; their weights are empty if not.

    Returns:
        the weights of each part.

    Raises:
        ValueError: a part has no weights, or there are weights of another part.
    """
    _check_names({name.partition(".")[0] for name in weights}, names, optional)
    of: dict[str, dict[str, np.ndarray]] = {part: {} for part in (*names, *optional)}
    for name, array in weights.items():
        part, _, rest = name.partition(".")
        of[part][rest] = array
    return of


def numbered(weights: Weights) -> list[dict[str, np.ndarray]]:
    """Share weights out to layers: {"0.bias": b, "1.bias": c} becomes a list of two."""
    count = len({name.partition(".")[0] for name in weights})
    return list(parts(weights, *map(str, range(count))).values())


def weight_and_bias(
    weights: Weights, *axes: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Take the "weight", which has these axes, and, if there is one, the "bias".

    Raises:
        TypeError: one is not an array; a torch tensor is none.
        ValueError: there is no weight, an unknown name, or a shape is wrong.
    """
    _check_names(set(weights), ("weight",), ("bias",))
    for name, array in weights.items():
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    weight, bias = weights["weight"], weights.get("bias")
    if weight.ndim != len(axes):
        raise ValueError(f"weight must be ({', '.join(axes)}), not {weight.shape}")
    if bias is not None and bias.shape != weight.shape[:1]:  # (1,) would broadcast
        raise ValueError(f"bias must be {weight.shape[:1]}, not {bias.shape}")
    return weight, bias


def only_weight(weights: Weights, *axes: str) -> np.ndarray:
    """Take the "weight", which has these axes, where there may be no bias."""
    _check_names(set(weights), ("weight",))
    return weight_and_bias(weights, *axes)[0]


def _check_names(
    found: set[str], names: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    missing = sorted(set(names) - found)
    unknown = sorted(found - {*names, *optional})
    if missing or unknown:
        raise ValueError(
            f"weights must be of {', '.join([*names, *optional])}; "
            f"missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown) or 'none'}"
        )
