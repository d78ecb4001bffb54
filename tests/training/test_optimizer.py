"""AdamW as the book makes it: which weights decay, and the paper's numbers.

A step of it is compared with a plain loop's in test_loop.py.
"""

import pytest
import torch

from tformer import Transformer, TransformerConfig
from tformer.training.optimizer import adamw


def make_model() -> Transformer:
    torch.manual_seed(0)
    sizes = {"vocab_size": 13, "d_model": 14, "num_heads": 7, "d_ff": 22}
    return Transformer(TransformerConfig.tiny(**sizes, positions="learned")).double()


def test_matrices_decay_and_nothing_else():
    model = make_model()
    decaying, other = adamw(model, weight_decay=0.3).param_groups
    assert (decaying["weight_decay"], other["weight_decay"]) == (0.3, 0.0)
    assert {p.ndim for p in decaying["params"]} == {2}
    assert {p.ndim for p in other["params"]} == {1}
    together = [*decaying["params"], *other["params"]]
    assert {id(p) for p in together} == {id(p) for p in model.parameters()}
    assert len(together) == len(list(model.parameters()))  # a tied matrix once


def test_the_numbers_of_the_paper():
    (group, _) = adamw(make_model()).param_groups
    assert (group["betas"], group["eps"]) == ((0.9, 0.98), 1e-9)
    assert (group["lr"], group["weight_decay"]) == (1.0, 0.01)


@pytest.mark.parametrize(
    "wrong", [{"weight_decay": -0.1}, {"eps": -1.0}, {"betas": (1.0, 0.9)}]
)
def test_bad_numbers(wrong):
    with pytest.raises(ValueError, match="Invalid"):
        adamw(make_model(), **wrong)
