"""Train small encoders to mirror digits, without residuals too; keep what is right.

    PYTHONPATH=docs python tests/experiments/rank_collapse.py

The fraction of right digits, by learning rate, after 120 steps and after 480. The code
is that of the chapter on rank collapse, which shows what is kept in
`rank_collapse_kept.py`. Six minutes on one core.
"""

from collections.abc import Iterator

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


def mirrored() -> Iterator[tuple[str, object, str, float]]:
    """Yield the fraction of right digits of each arm and rate, seed after seed."""
    c = functions_of("rank-collapse.md")
    for seed in range(5):
        for arm, options in ARMS.items():
            for rate in RATES[arm]:
                for steps in (120, 480):
                    right = c["trained"](rate, seed, steps, **options)
                    yield arm, rate, f"after-{steps}", right


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, mirrored())
