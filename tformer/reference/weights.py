"""Weights by name: what the twin's classes take, and how they share it out.

The names are those of the torch module's `state_dict`: "layers.0.norm.bias" is the bias
of the norm of the first layer.
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
    return {
        part: {
            name.removeprefix(f"{part}."): array
            for name, array in weights.items()
            if name.startswith(f"{part}.")
        }
        for part in (*names, *optional)
    }


def numbered(weights: Weights) -> list[dict[str, np.ndarray]]:
    """Share weights out to layers: {"0.bias": b, "1.bias": c} becomes a list of two.

    Raises:
        ValueError: a number is left out, or a name has none.
    """
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
    if bias is not None:
        check_shape("bias", bias, weight.shape[:1])
    return weight, bias


def only_weight(weights: Weights, *axes: str) -> np.ndarray:
    """Take the "weight", which has these axes, where there may be no bias.

    Raises:
        ValueError: there is no weight, another name, or the shape is wrong.
    """
    _check_names(set(weights), ("weight",))
    return weight_and_bias(weights, *axes)[0]


def check_shape(name: str, weight: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise a ValueError unless the named weight has this shape."""
    if weight.shape != shape:
        raise ValueError(f"{name} must be {shape}, not {weight.shape}")


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
