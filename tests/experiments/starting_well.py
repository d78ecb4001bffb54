"""Train with and without a warm-up, as the chapter on initialisation does, and keep it.

    PYTHONPATH=docs python tests/experiments/starting_well.py

Ten seeds at six rates, which are exponents of 2. The code is the chapter's, which shows
what is kept in `starting_well_kept.py`. A minute on one core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep

WARM_UP_RATES = (-8, -7, -6, -5, -4.5, -4)
Rows = Iterator[tuple[str, object, str, float]]


def measured() -> Rows:
    """Yield the loss with a warm-up of 20 steps, and without, seed after seed."""
    c = functions_of("starting-well.md")
    for seed in range(10):
        for rate in WARM_UP_RATES:
            for what, steps in (("without", 1), ("with", 20)):
                yield "warm-up", rate, what, c["end_of"](2.0**rate, steps, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
