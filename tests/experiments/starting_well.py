"""Run the trainings of the chapter on initialisation and µP, and keep them.

    PYTHONPATH=docs python tests/experiments/starting_well.py

Ten seeds with and without a warm-up, five of each width, usual and with µP. The code
is the chapter's, which shows what is kept in `starting_well_kept.py`. Rates are
exponents of 2. Three minutes on one core.
"""

from collections.abc import Iterator
from typing import Any

from chapters import as_on_the_page, functions_of, keep

WARM_UP_RATES = (-8, -7, -6, -5, -4.5, -4)
WIDTHS = {  # the best rate lies within each range
    ("usual", 1): range(-9, -4),
    ("usual", 2): range(-10, -5),
    ("usual", 4): range(-10, -5),
    ("with_mup", 2): range(-9, -4),
    ("with_mup", 4): range(-9, -4),
}
Rows = Iterator[tuple[str, object, str, float]]


def warm_up(c: dict[str, Any], seed: int) -> Rows:
    """Yield the loss with a warm-up of 20 steps, and without."""
    for rate in WARM_UP_RATES:
        for what, steps in (("without", 1), ("with", 20)):
            yield "warm-up", rate, what, c["end_of"](2.0**rate, steps, seed)


def widths(c: dict[str, Any], seed: int) -> Rows:
    """Yield the loss of each width and rate, usual and with µP."""
    for (name, m), rates in WIDTHS.items():
        for rate in rates:
            made = c[name](m, seed)
            loss = c["end_of_training"](*made, 50, lambda _, k=rate: 2.0**k)
            yield f"{name},{32 * m}", rate, "loss", loss


def measured() -> Rows:
    """Yield everything, seed after seed."""
    c = functions_of("starting-well.md")
    for seed in range(10):
        yield from warm_up(c, seed)
    for seed in range(5):
        yield from widths(c, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
