"""Scale numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tiny.checks import check_positive

ROOT = 2


# The square root keeps the numbers small.
def scale(values: list[float], width: float) -> list[float]:
    """Divide by the root of the width."""
    return [value / math.sqrt(check_positive(width)) for value in values]


@dataclass
class Scaler:
    """Scales by one width."""

    width: float = 4.0

    def __call__(self, values: list[float]) -> list[float]:
        """Scale."""
        if not values:
            raise ValueError("values must not be empty")
        return scale(values, self.width)


def root(value: float) -> float:
    """Take the root that the module is built on."""
    return value ** (1 / ROOT)
