"""The error function, which NumPy lacks: erf(x) = 2/√π ∫₀ˣ exp(-t²) dt.

Rational approximations of W. J. Cody, "Rational Chebyshev approximations for the error
function", Mathematics of Computation 23 (1969), 631-637. For small x they give
erf(x) / x in powers of x², beyond it (1 - erf(x)) · exp(x²) in powers of x.
"""

import numpy as np

# Coefficients, that of the highest power first.
SMALL_UP = [
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
]
SMALL_DOWN = [
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
]
LARGE_UP = [
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
]
LARGE_DOWN = [
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
]


def erf(x: np.ndarray) -> np.ndarray:
    """Compute the error function of each number, to the last digits of float64.

    Args:
        x: any shape, floating.

    Returns:
        the shape and dtype of x; between -1 and 1.
    """
    size = np.abs(x.astype(np.float64))
    near = np.minimum(size, 0.46875)  # Cody's border between the two
    far = np.clip(size, 0.46875, 6.0)  # erf(6) is 1 in float64
    square = near * near
    small = near * np.polyval(SMALL_UP, square) / np.polyval(SMALL_DOWN, square)
    tail = np.exp(-far * far) * np.polyval(LARGE_UP, far) / np.polyval(LARGE_DOWN, far)
    value = np.where(size <= 0.46875, small, 1.0 - tail)
    return np.copysign(value, x).astype(x.dtype)
