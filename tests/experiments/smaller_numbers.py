"""Round five trained models of the chapter on quantisation, and keep what it costs.

    PYTHONPATH=docs python tests/experiments/smaller_numbers.py

The added loss, with a scale for each row and for each 16 numbers of it, and with a
cache of few bits. The code is the chapter's, which shows what is kept in
`smaller_numbers_kept.py`. Three minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

GROUPS = {"rows": None, "groups_of_16": 16}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the added loss of each way and number of bits, seed after seed."""
    c = functions_of("smaller-numbers.md")
    torch.manual_seed(1)
    c |= {"fresh": c["sums"](2000).view(-1, 28)}
    for seed in range(5):
        c |= {"model": (model := c["trained"](seed))}
        exact = c["loss_of"](model)
        yield "float32", 32, "loss", exact
        for way, group in GROUPS.items():
            for bits in (8, 6, 5, 4, 3, 2):
                loss = c["loss_of"](c["rounded_to"](bits, group))
                yield way, bits, "added", loss - exact
        full, _ = c["cached_loss"](c["KeyValueCache"])
        for bits in (8, 4, 3, 2):
            yield "cache", bits, "added", c["coarse_loss"](bits) - full


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
