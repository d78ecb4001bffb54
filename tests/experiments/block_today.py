"""Train small models with the parts of a block of today, and keep their losses.

    PYTHONPATH=docs python tests/experiments/block_today.py

The loss on sums drawn apart from those of the training, by learning rate; for four of
the models, at rates around the best, also after four times as many steps, and for three
after sixteen times as many. The code is that of the chapter on the block today, which
shows what is kept in `block_today_kept.py`. A quarter of an hour on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

RATES = (0.001, 0.003, 0.0055, 0.01, 0.014, 0.02, 0.03, 0.06, 0.1)
LONGER = "GPT's", "rotary", "all-three", "QK-norm"
LONGEST = "GPT's", "all-three", "QK-norm"


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each model and rate, seed after seed."""
    c = functions_of("block-today.md")
    for seed in range(5):
        for name, parts in c["VARIANTS"].items():
            for rate in RATES:
                yield name, rate, "loss", c["trained_loss"](parts, rate, seed)
        for name in LONGER:
            for rate in RATES[:7]:
                loss = c["trained_loss"](c["VARIANTS"][name], rate, seed, 400)
                yield name, rate, "loss_longer", loss
        for name in LONGEST:
            for rate in RATES[:6]:
                loss = c["trained_loss"](c["VARIANTS"][name], rate, seed, 1600)
                yield name, rate, "loss_longest", loss


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
