"""The losses of post-training in NumPy are those in torch."""

import numpy as np
import pytest
import torch

from tformer.reference import post_training as twin
from tformer.training import post_training

B, T, V = 5, 7, 11
CALLS = [
    ("token_log_probs", ("logits", "targets"), {}),
    ("sequence_log_probs", ("logits", "targets", "mask"), {}),
    ("sft_loss", ("logits", "targets", "mask"), {}),
    ("dpo_loss", ("a", "b", "c", "d"), {}),
    ("dpo_loss", ("a", "b", "c", "d"), {"beta": 2.0}),
    ("grpo_advantages", ("rewards",), {}),
    ("grpo_advantages", ("rewards",), {"eps": 0.5}),
    ("grpo_advantages", ("rewards",), {"divide_by_std": False}),
    ("kl_k3", ("new", "ref"), {}),
    ("grpo_loss", ("new", "old", "ref", "a", "mask"), {}),
    (
        "grpo_loss",
        ("new", "old", "ref", "a", "mask"),
        {"clip": 0.1, "beta": 1.0, "max_len": 9},
    ),
]


@pytest.mark.parametrize(("name", "arguments", "options"), CALLS)
def test_twin(exact, name, arguments, options):
    """`exact` draws float64; half of the ratios lie beyond the clip."""
    numbers, place = exact.numbers, torch.arange(T)
    given = {
        "logits": 3 * numbers(B, T, V),
        "targets": exact.ids(V, B, T),
        "mask": (place >= 1) & (place <= torch.arange(1, B + 1)[:, None]),
        "rewards": numbers(3, 4),
        **{x: numbers(B) for x in "abcd"},
        **{x: -numbers(B, T).abs() / 2 for x in ("new", "old", "ref")},
    }
    inputs = [given[x] for x in arguments]
    ours, theirs = (getattr(p, name) for p in (twin, post_training))
    exact.same(lambda *a, **o: as_array(ours(*a, **o)), theirs, *inputs, **options)


def as_array(x):
    """NumPy's mean is a number, torch's a tensor without axes."""
    return np.asarray(x)
