"""Train a small post-norm model with a warm-up and without, and keep its last losses.

    PYTHONPATH=docs python tests/experiments/optimizer.py

The mean loss of the last 20 of 80 steps, and of 320, by highest rate. The code is that
of the chapter on the optimizer, which shows what is kept in `optimizer_kept.py`. Three
minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep
from tformer.training.optimizer import adamw

ARMS = {"without": 1, "with": 25}  # steps of warm-up
RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032)


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each arm and rate, seed after seed."""
    c = functions_of("optimizer.md")
    c.update(adamw=adamw)  # which the page shows from the package's file
    for seed in range(5):
        for arm, warmup_steps in ARMS.items():
            for rate in RATES:
                losses = c["curve_of"](rate, warmup_steps, seed, 320)
                for steps in (80, 320):
                    yield arm, rate, f"after-{steps}", losses[steps - 20 : steps].mean()


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
