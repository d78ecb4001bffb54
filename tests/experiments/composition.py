"""Train two layers of attention with five seeds, and keep how their heads compose.

    PYTHONPATH=docs python tests/experiments/composition.py

For each pair of a head of layer 1 and one of layer 2 the scores of Q-, K- and
V-composition, divided by their mean over random directions; and the loss after the
first block if queries, keys or values do not see what the previous-token head wrote.
The models are those of the chapter on what a head computes, which shows what is kept
in `composition_kept.py`. Two minutes on one core.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from chapters import functions_of, keep

RATE = 0.01


def composed(
    parts: dict[tuple[int, int], tuple[Tensor, Tensor]], i: int, j: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return W_OV of head i of layer 1, and what it meets in head j: by Q, K and V."""
    w_qk, w_ov = parts[1, j]
    return parts[0, i][1], {"Q": w_qk, "K": w_qk.T, "V": w_ov}


def score(a: Tensor, b: Tensor) -> Tensor:
    """Return the length of a product by those of its factors, in 0 to 1."""
    size = torch.linalg.matrix_norm
    return size(a @ b) / (size(a) * size(b))


def by_chance(a: Tensor, b: Tensor, draws: int = 200) -> Tensor:
    """Return the mean score if directions were drawn at random."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(draws, *b.shape, generator=generator, dtype=a.dtype)
    return score(a, torch.linalg.qr(drawn)[0] @ b).mean()


def measured() -> Iterator[tuple[str, object, str, float]]:
    """Yield everything, seed after seed."""
    c = functions_of("what-a-head-computes.md")
    for seed in range(5):
        model = c["trained"](2, seed=seed, rate=RATE)
        model.requires_grad_(False)
        parts, maps = c["parts_of"](model), c["maps_of"](model)
        looks = [[c["looks_of"](head)[i] for head in maps[i]] for i in (0, 1)]
        previous, induction = (int(x[1] > x[0]) for x in looks)
        for i, below in ((previous, "previous"), (1 - previous, "other")):
            for j, above in ((induction, "induction"), (1 - induction, "second")):
                written, read = composed(parts, i, j)
                for way, matrix in read.items():
                    ratio = score(written, matrix) / by_chance(written, matrix)
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
