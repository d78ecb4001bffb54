"""Train two layers of attention with five seeds, and keep how their heads compose.

    PYTHONPATH=docs python tests/experiments/composition.py

For each pair of a head of layer 1 and one of layer 2 the scores of Q-, K- and
V-composition, divided by their mean over random directions; and the loss after the
first block if queries, keys or values do not see what the previous-token head wrote.
The code is that of the chapter on what a head computes, which shows what is kept in
`composition_kept.py`. Two minutes on one core.
"""

from collections.abc import Iterator

import torch

from chapters import functions_of, keep

RATE = 0.01


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield everything, seed after seed."""
    c = functions_of("what-a-head-computes.md")
    for seed in range(5):
        model, _ = c["trained"](2, seed=seed, rate=RATE)
        model.requires_grad_(False)
        parts, maps = c["parts_of"](model), c["maps_of"](model)
        looks = [[c["looks_of"](head)[i] for head in maps[i]] for i in (0, 1)]
        previous, induction = (int(x[1] > x[0]) for x in looks)
        for i, below in ((previous, "previous"), (1 - previous, "other")):
            for j, above in ((induction, "induction"), (1 - induction, "second")):
                written, read = c["composed"](parts, i, j)
                for way, matrix in read.items():
                    mean, _ = c["by_chance"](written, matrix)
                    ratio = c["score"](written, matrix) / mean
                    yield f"{below}-{above}", RATE, way, ratio.item()
        yield "loss", RATE, "whole", c["loss_without"](model, parts)
        for way, effect in (("Q", "query"), ("K", "key"), ("V", "value")):
            others = {"query", "key", "value", "sum"} - {effect}
            removed = (0, previous)
            lost = c["loss_without"](model, parts, removed, others)
            yield "loss", RATE, f"without,{way}", lost


if __name__ == "__main__":
    torch.set_num_threads(1)
    keep(__file__, measured())
