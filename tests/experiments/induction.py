"""Train one and two layers of attention with five seeds, and keep what grows.

    PYTHONPATH=docs python tests/experiments/induction.py

The loss after the first block, of one layer by rate; and in two layers which head looks
where: the number of the head with the largest weight, and that weight. The code is that
of the chapter on what a head computes, which shows what is kept in
`induction_kept.py`. Six minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

RATES = {1: (0.003, 0.01, 0.03), 2: (0.01,)}  # by the number of layers
NAMES = {1: "one_layer", 2: "two_layers"}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield everything, seed after seed."""
    c = functions_of("what-a-head-computes.md")
    for seed in range(5):
        for layers, rates in RATES.items():
            name = NAMES[layers]
            for rate in rates:
                model = c["trained"](layers, seed=seed, rate=rate)
                _, later = c["losses"](model, *c["TEST"])
                yield name, rate, "loss", later
                if layers == 1:
                    continue
                first, second = c["maps_of"](model)
                for what, heads, place in (("before", first, 0), ("after", second, 1)):
                    looks = [c["looks_of"](head)[place] for head in heads]
                    yield name, rate, f"{what},head", looks.index(max(looks)) + 1
                    yield name, rate, f"{what},most", max(looks)
                    yield name, rate, f"{what},least", min(looks)


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
