"""Train what a layer recalls with five seeds, and keep the shares of words.

    PYTHONPATH=docs python tests/experiments/recall.py

Eight keys, each written once or twice. The code is that of the chapter on state
spaces, which shows what is kept in `recall_kept.py`. Four minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

RATES = {  # softmax attention is at or near its limit at 0.01
    "softmax": (0.01,),
    "rotary": (0.01,),
    "linear": (0.01, 0.03, 0.1, 0.3),
    "delta": (0.01, 0.03, 0.1, 0.3),
}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the share of each layer, rate and case, seed after seed."""
    c = functions_of("state-spaces.md")
    for seed in range(5):
        for times, what in ((1, "once"), (2, "twice")):
            for name, rates in RATES.items():
                for rate in rates:
                    share = c["recalled"](name, 8, times, rate, seed)
                    yield name, rate, what, share


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
