"""Train the model of the chapter on ViT with five seeds, and keep its accuracies.

    PYTHONPATH=docs python tests/experiments/vit.py

With positions, without, and with the patches of all images in another order. It writes
`vit_kept.py`, which the chapter shows. Two minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import as_on_the_page, functions_of, keep

RATES = {
    "positions": (0.006, 0.012, 0.024),
    "rearranged": (0.006, 0.012, 0.024),
    "none": (0.006, 0.012, 0.024, 0.048),
}


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield the accuracy of each way, rate and seed."""
    c = functions_of("vit.md")
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    images = c["IMAGES"], c["rearranged"](c["IMAGES"], order)
    for seed in range(5):
        for way, rates in RATES.items():
            for rate in rates:
                each = images[way == "rearranged"]
                model = c["train"](c["fresh"](seed, way != "none"), each, rate)
                yield way, rate, "accuracy", c["accuracy"](model, each)


if __name__ == "__main__":
    as_on_the_page()
    keep(__file__, measured())
