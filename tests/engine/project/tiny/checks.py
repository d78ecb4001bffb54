"""Checks that more than one module makes."""


def check_positive(value: float) -> float:
    """Return a number above zero."""
    if value <= 0:
        raise ValueError(f"value ({value}) must be above 0")
    return value
