"""AdamW as the book makes it: which weights decay, and that it is torch's."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

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


def test_a_step_by_hand():
    layer = nn.Linear(3, 2).double()
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()
    optimizer = adamw(layer, weight_decay=0.1, betas=(0.8, 0.95), eps=1e-3)
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    of_weight, of_bias = torch.randn(2, 3).double(), torch.randn(2).double()
    layer.weight.grad, layer.bias.grad = of_weight.clone(), of_bias.clone()
    optimizer.step()
    # After one step the corrected means are the gradient and its square.
    weight = weight * (1 - 0.01 * 0.1) - 0.01 * of_weight / (of_weight.abs() + 1e-3)
    assert_close(layer.weight.detach(), weight, rtol=1e-12, atol=1e-12)
    bias = bias - 0.01 * of_bias / (of_bias.abs() + 1e-3)
    assert_close(layer.bias.detach(), bias, rtol=1e-12, atol=1e-12)


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
