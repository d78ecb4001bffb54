"""Train deep stacks with post-norm and pre-norm, five seeds each, and keep the losses.

    PYTHONPATH=docs python tests/experiments/residuals.py

The mean loss of three spans of ten steps, by rate. The code is that of the chapter on
residuals and norms, which shows what is kept in `residuals_kept.py`. Five minutes on
one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

ARMS = {  # norm first, steps of warm-up
    "post-norm": (False, 1),
    "post-norm,warm-up": (False, 30),
    "pre-norm": (True, 1),
    "pre-norm,warm-up": (True, 30),
}
RATES = (0.0003, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.06, 0.1)


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each arm, rate and span of steps, seed after seed."""
    c = functions_of("residuals.md")
    for seed in range(5):
        for arm, (norm_first, warm_up) in ARMS.items():
            for rate in RATES:
                for steps, loss in c["train"](norm_first, rate, warm_up, seed).items():
                    yield arm, rate, steps, loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
