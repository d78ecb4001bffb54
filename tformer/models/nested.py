"""Parts of a config that have values of their own: made of JSON, held to their type."""

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any


def nested(kind: type[Any], name: str, value: Any) -> Any:
    """Make a part of its values by name, as JSON has them; one that is made stays.

    Args:
        kind: the dataclass of the part.
        name: of the part in its config.
        value: of the kind, or its values by name.

    Raises:
        TypeError: the value is neither.
        ValueError: the part has no such value, or it is out of its range.
    """
    if isinstance(value, Mapping):
        unknown = sorted(value.keys() - {each.name for each in fields(kind)})
        if unknown:
            raise ValueError(f"{name} has an unknown {unknown[0]!r}")
        return kind(**value)
    if not isinstance(value, kind):
        given = type(value).__name__
        raise TypeError(f"{name} must be {kind.__name__}, not {given}")
    return value


def finite_above(low: float, name: str, value: Any) -> float:
    """Return a number as a float: torch takes no whole number of 64 bits or more.

    Raises:
        TypeError: it is no number.
        ValueError: it is not above `low`, or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    too_large = abs(value) > sys.float_info.max
    number = (math.inf if value > 0 else -math.inf) if too_large else float(value)
    if not low < number < math.inf:
        raise ValueError(f"{name} ({number}) must be above {low:g} and finite")
    return number
