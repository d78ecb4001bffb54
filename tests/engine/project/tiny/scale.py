"""Scale numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tiny.checks import check_positive

ROOT = 2


# --8<-- [start:scale]
# The square root keeps the numbers small.
def scale(values: list[float], width: float) -> list[float]:
    """Divide by the root of the width."""
    return [value / math.sqrt(check_positive(width)) for value in values]
    # --8<-- [end:scale]


# --8<-- [start:Scaler]
@dataclass
class Scaler:
    """Scales by one width."""

    width: float = 4.0

    # --8<-- [start:call]
    def __call__(self, values: list[float]) -> list[float]:
        """Scale."""
        if not values:
            raise ValueError("values must not be empty")
        return scale(values, self.width)
        # --8<-- [end:call]
        # --8<-- [end:Scaler]


# --8<-- [start:root]
def root(value: float) -> float:
    """Take the root that the module is built on."""
    return value ** (1 / ROOT)
    # --8<-- [end:root]
