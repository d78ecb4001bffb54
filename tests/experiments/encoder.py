"""Train small encoders to mirror digits, and a GRU to remember one; keep what is right.

    PYTHONPATH=docs python tests/experiments/encoder.py

The fraction of right answers, by learning rate. The code is that of the chapter on the
encoder, which shows what is kept in `encoder_kept.py`. Seven minutes on one core.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch

from chapters import functions_of, keep

ARMS = {
    "pre-norm": {"norm_first": True},
    "post-norm": {},
    "no-residual": {"norm_first": True, "residual": False},
    "one-layer": {"norm_first": True, "residual": False, "num_layers": 1},
}
RATES = {
    "pre-norm": (0.002, 0.004, 0.008, 0.015, 0.03),
    "post-norm": (0.002, 0.004, 0.008, 0.015, 0.03),
    "no-residual": (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03),
    "one-layer": (0.008, 0.015, 0.03),
}


REMEMBERS = {
    "GRU": ("gru", (0.01, 0.03, 0.06, 0.12)),
    "encoder-layer": ("encoder_layer_of_32", (0.003, 0.01, 0.03)),
}


def mirrored(c: dict[str, Any]) -> Iterator[tuple[str, object, str, float]]:
    """Yield the fraction of right digits of each arm and rate, seed after seed."""
    for seed in range(5):
        for arm, options in ARMS.items():
            for rate in RATES[arm]:
                yield arm, rate, "right", c["trained"](rate, seed, **options)


def remembered(c: dict[str, Any]) -> Iterator[tuple[str, object, str, float]]:
    """Yield how often the first of so many digits is told, seed after seed."""
    for seed in range(5):
        for name, (make, rates) in REMEMBERS.items():
            for length in (32, 128):
                for rate in rates:
                    right = c["remembers_first"](c[make], length, rate, seed)
                    yield name, rate, f"of-{length}", right


if __name__ == "__main__":
    torch.set_num_threads(1)
    chapter = functions_of("encoder.md")
    keep(__file__, chain(mirrored(chapter), remembered(chapter)))
