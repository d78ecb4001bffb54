import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import FeedForward

B, T, D, F = 2, 5, 7, 11


class Squared(nn.ReLU):
    def forward(self, x):
        return super().forward(x) ** 2


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "relu2"])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_layers(randomised, activation, bias):
    ours = randomised(FeedForward(D, F, activation=activation, bias=bias))
    bends = {"relu": nn.ReLU(), "gelu": nn.GELU(), "gelu_tanh": nn.GELU("tanh")}
    bend = bends.get(activation) or Squared()
    theirs = nn.Sequential(nn.Linear(D, F, bias=bias), bend, nn.Linear(F, D, bias=bias))
    theirs.load_state_dict(
        {
            name.replace("linear1", "0").replace("linear2", "2"): weight
            for name, weight in ours.state_dict().items()
        }
    )
    x = torch.randn(B, T, D, requires_grad=True)
    assert ours(x).shape == (B, T, D)
    assert_close(ours(x), theirs(x))
    gradients = [torch.autograd.grad(f(x).square().sum(), x) for f in (ours, theirs)]
    assert_close(*gradients)


def test_by_hand():
    """max(0, x W₁ + b₁) W₂ + b₂ with one input and two inner numbers, of which the
    relu keeps one: 3 · 2 + 1 = 7 and 3 · -4 + 5 = -7; 7 · 10 + 0 · 100 + 0.5."""
    network = FeedForward(1, 2)
    with torch.no_grad():
        network.linear1.weight.copy_(torch.tensor([[2.0], [-4.0]]))
        network.linear1.bias.copy_(torch.tensor([1.0, 5.0]))
        network.linear2.weight.copy_(torch.tensor([[10.0, 100.0]]))
        network.linear2.bias.fill_(0.5)
    assert network(torch.tensor([[[3.0]]])).item() == 70.5
    gelu = FeedForward(1, 2, activation="gelu")
    gelu.load_state_dict(network.state_dict())
    inner = [z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in (7, -7)]
    wanted = inner[0] * 10 + inner[1] * 100 + 0.5
    assert gelu(torch.tensor([[[3.0]]])).item() == pytest.approx(wanted)


def test_every_position_is_transformed_by_itself():
    network, x = FeedForward(D, F), torch.randn(B, T, D)
    changed = x.clone()
    changed[1, 3] += 1
    same = torch.ones(B, T, dtype=torch.bool)
    same[1, 3] = False
    before, after = network(x), network(changed)
    assert torch.equal(before[same], after[same])
    assert not torch.allclose(before[~same], after[~same])


def test_dropout_is_of_inner_numbers_and_for_training():
    network = FeedForward(D, 1, dropout=0.5, bias=False)
    x = torch.randn(1, 200, D)
    whole = FeedForward(D, 1, bias=False)
    whole.load_state_dict(network.state_dict())
    output, wanted = network(x), whole(x)
    # With one inner number a position is dropped whole, or doubled.
    kept = (output != 0).any(dim=-1)
    alive = (wanted != 0).any(dim=-1)
    assert 0.3 < kept[alive].float().mean() < 0.7
    assert_close(output[kept], 2 * wanted[kept])
    network.eval()
    assert torch.equal(network(x), wanted)


def test_parameters():
    network = FeedForward(D, F)
    assert isinstance(network.linear1, nn.Linear)
    assert isinstance(network.linear2, nn.Linear)
    assert sum(p.numel() for p in network.parameters()) == 2 * D * F + D + F
    bare = FeedForward(D, F, bias=False)
    assert sum(p.numel() for p in bare.parameters()) == 2 * D * F
    x = torch.randn(B, T, D)
    assert torch.equal(copy.deepcopy(network)(x), network(x))


def test_bad_input(raises):
    with raises(ValueError, "d_model (0) must be at least 1"):
        FeedForward(0, F)
    with raises(ValueError, "d_ff (0) must be at least 1"):
        FeedForward(D, 0)
    with raises(ValueError, "dropout (1.0) must be in [0, 1)"):
        FeedForward(D, F, dropout=1.0)
    with raises(
        ValueError, "activation ('swish') must be one of relu, gelu, gelu_tanh, relu2"
    ):
        FeedForward(D, F, activation="swish")
    with raises(
        ValueError, "x must have width 7, as weight is (11, 7), not (2, 5, 14)"
    ):
        FeedForward(D, F)(torch.randn(B, T, 2 * D))
