"""Train the delta rule with a short convolution and without; keep what it recalls.

    PYTHONPATH=docs python tests/experiments/convolution.py

Keys and words are tokens of their own, in turn. The code is that of the chapter on
state spaces, which shows what is kept in `convolution_kept.py`. Four minutes on
one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

RATES = (0.003, 0.01, 0.03, 0.1)
LONGER = 2000  # steps, of the layer without a convolution


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the share of each kernel, rate and number of steps, seed after seed."""
    c = functions_of("state-spaces.md")
    for seed in range(5):
        for kernel in (None, 1, 2, 4):
            name = "none" if kernel is None else f"kernel,{kernel}"
            for rate in RATES:
                share = c["recalled_in_turn"](kernel, rate, seed)
                yield name, rate, "300", share
        for rate in RATES[:2]:
            share = c["recalled_in_turn"](None, rate, seed, LONGER)
            yield "none", rate, f"{LONGER}", share


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
