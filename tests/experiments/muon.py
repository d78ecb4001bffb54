"""Run Muon beside AdamW with five seeds, and keep the losses.

    PYTHONPATH=docs python tests/experiments/muon.py

The loss on unseen lines, by optimizer and learning rate. The code is that of the
chapter on Muon, which shows what is kept in `muon_kept.py`. Five minutes on one core.
"""

from collections.abc import Iterator

from chapters import as_on_the_page, functions_of, keep

RATES = {
    "adamw": (0.005, 0.01, 0.02, 0.04),
    "muon": (0.01, 0.02, 0.04, 0.08),
    "every_matrix": (0.01, 0.02, 0.04, 0.08),
}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each optimizer and rate, seed after seed."""
    c = functions_of("muon.md")
    for seed in range(5):
        for name, rates in RATES.items():
            for rate in rates:
                yield name, rate, "loss", c["learn"](c[name], rate, seed)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
