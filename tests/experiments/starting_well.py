"""Train with and without a warm-up, as the chapter on initialisation does, and keep it.

    PYTHONPATH=docs python tests/experiments/starting_well.py

Ten seeds at six rates, which are exponents of 2. Five seeds in four times as many
steps, also of 8 layers with and without a smaller last matrix. The code is the
chapter's, which shows what is kept in `starting_well_kept.py`. Seven minutes on one
core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep

WARM_UP_RATES = (-8, -7, -6, -5, -4.5, -4)
LONG_RATES = (-9, -8, -7, -6)
DEEP_RATES = (-10, -9, -8, -7)
Rows = Iterator[tuple[str, object, str, float]]


def measured() -> Rows:
    """Yield the loss with a warm-up of 20 steps, and without, seed after seed.

    Then the same in four times as many steps, and 8 layers in four times as many, with
    a smaller last matrix and with all matrices alike.
    """
    c = functions_of("starting-well.md")
    for seed in range(10):
        for rate in WARM_UP_RATES:
            for what, steps in (("without", 1), ("with", 20)):
                yield "warm-up", rate, what, c["end_of"](2.0**rate, steps, seed)
    for seed in range(5):
        for rate in LONG_RATES:
            for what, steps in (("without", 1), ("with", 20)):
                end = c["end_of"](2.0**rate, steps, seed, steps=240)
                yield "warm-up,steps=240", rate, what, end
    for seed in range(5):
        for norm in ("pre", "post"):
            for rate in DEEP_RATES:
                for what, scaled in (("smaller", True), ("alike", False)):
                    end = c["end_of_eight"](scaled, norm, 0.18, seed, 160, 2.0**rate)
                    yield f"{norm}-norm,steps=160", rate, what, end


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
