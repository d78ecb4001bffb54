"""Scale arrays."""

import numpy as np
from numpy import ndarray


def scale(values: ndarray, width: float) -> ndarray:
    """Divide by the root of the width."""
    return values / np.sqrt(width)
