"""Run Muon beside AdamW with five seeds, and keep the losses.

    PYTHONPATH=docs python tests/experiments/muon.py

The loss on unseen lines, by optimizer, learning rate and number of steps. The code is
that of the chapter on Muon, which shows what is kept in `muon_kept.py`. Six minutes on
one core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep

RATES = {
    80: {
        "adamw": (0.005, 0.01, 0.02, 0.04),
        "muon": (0.01, 0.02, 0.04, 0.08),
        "every_matrix": (0.01, 0.02, 0.04, 0.08),
    },
    480: {
        "adamw": (0.005, 0.01, 0.02),
        "muon": (0.01, 0.02, 0.04),
        "every_matrix": (0.01, 0.02, 0.04),
    },
}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each optimizer, rate and number of steps, seed after seed."""
    c = functions_of("muon.md")
    ways = {"adamw": c["adamw"], "muon": c["muon"], "every_matrix": c["every_matrix"]}
    for seed in range(5):
        for steps, rates in RATES.items():
            pairs = [(name, rate) for name in rates for rate in rates[name]]
            for name, rate in pairs:
                loss = c["learn"](ways[name], rate, seed, steps)
                yield name, rate, str(steps), loss


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
