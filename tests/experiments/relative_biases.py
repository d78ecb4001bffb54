"""Train each kind of positions with five seeds, and keep the losses by length.

    PYTHONPATH=docs python tests/experiments/relative_biases.py

After 250 steps and after 1,000: the loss on the last letters of texts of 1, 2, 4 and
8 times the trained length, and how much weight is on keys beyond it. The code is
that of the chapter on relative biases, which shows what is kept in
`relative_biases_kept.py`. Eight minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

NAMES = ("sinusoidal", "rotary", "t5", "alibi")
RATES = (0.003, 0.01, 0.03)  # the best of each kind is 0.01, after 1,000 steps too
SHARED = {"num_buckets": 16, "max_distance": 20}  # exercise 3
KINDS: dict[tuple[str, float], dict[str, int]] = {
    (kind, rate): {} for kind in NAMES for rate in RATES
}
KINDS["t5,16_buckets", 0.01] = SHARED
for kind in NAMES:
    KINDS |= {(f"{kind},1000_steps", rate): {"steps": 1000} for rate in RATES}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the loss of each kind, rate and length, seed after seed."""
    c = functions_of("relative-biases.md")
    for seed in range(5):
        for (kind, rate), options in KINDS.items():
            model = c["trained"](kind.split(",")[0], seed, rate, **options)
            for times in (1, 2, 4, 8):
                yield kind, rate, f"loss,{times}", c["loss_at"](model, times * c["L"])
            if kind.startswith(("t5", "alibi")):
                yield kind, rate, "far", c["weight_beyond"](model)


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
