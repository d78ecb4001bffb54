"""Checks that several modules share: each names argument, value and rule."""

from importlib import import_module
from typing import Any


def check_positive(**sizes: int) -> None:
    """Raise unless every size is a whole number above zero.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below one.
    """
    for name, value in sizes.items():
        # While torch.export runs the code a size is no int, but may stand for one.
        whole = isinstance(value, int) or hasattr(value, "__index__")
        if isinstance(value, bool) or not whole:
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if value < 1:
            raise ValueError(f"{name} ({value}) must be at least 1")


def check_at_least_0(**counts: int) -> None:
    """Raise unless every count is a whole number, zero or above.

    Raises:
        TypeError: a count is not an int.
        ValueError: a count is below zero.
    """
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if value < 0:
            raise ValueError(f"{name} ({value}) must be at least 0")


def check_probability(**probabilities: float) -> None:
    """Raise unless every probability lies in [0, 1).

    Raises:
        ValueError: a probability is outside [0, 1). One would drop everything.
    """
    for name, value in probabilities.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} ({value}) must be in [0, 1)")


def check_divisible(**sizes: int) -> None:
    """Raise unless the first of two named sizes is a multiple of the second.

    Raises:
        ValueError: there is a remainder.
    """
    (name, value), (divisor_name, divisor) = sizes.items()
    if value % divisor:
        raise ValueError(
            f"{name} ({value}) must be divisible by {divisor_name} ({divisor})"
        )


def check_buckets(num_buckets: int, max_distance: int) -> None:
    """Raise unless T5's buckets can reach so far: half of them hold one distance each.

    Raises:
        TypeError: a number is not an int.
        ValueError: there are too few buckets, or `max_distance` is too small.
    """
    check_positive(num_buckets=num_buckets, max_distance=max_distance)
    if num_buckets < 2:
        raise ValueError(f"num_buckets ({num_buckets}) must be at least 2")
    if max_distance <= num_buckets // 2:
        raise ValueError(
            f"max_distance ({max_distance}) must be above {num_buckets // 2}, the "
            "number of buckets that hold one distance each"
        )


def require(module: str) -> Any:
    """Import a module of an optional package.

    Args:
        module: its name, such as "babel.dates".

    Returns:
        The module.

    Raises:
        ImportError: the package is not installed; the message says what to install.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, and lacks something itself
            raise
        raise ImportError(
            f"this needs the package {package}: pip install 'tformer[train]'"
        ) from error
    return import_module(module)
