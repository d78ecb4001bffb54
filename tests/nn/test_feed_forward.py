"""The feed-forward network, plain and gated: formula, every activation, errors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tformer import FeedForward, GatedFeedForward
from tformer.nn import ClampedFeedForward, clamped_swiglu
from tformer.nn.feed_forward import ACTIVATIONS, GATES

D, D_FF = 5, 7
BOTH = pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])


def gelu_tanh(x):
    return x / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


BENDS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x),
    "gelu_tanh": gelu_tanh,
    "relu2": lambda x: x.clamp(min=0) ** 2,
    "silu": lambda x: x / (1 + torch.exp(-x)),
}
OF_GATES = {
    "glu": lambda x: 1 / (1 + torch.exp(-x)),
    "reglu": BENDS["relu"],
    "geglu": BENDS["gelu"],
    "geglu_tanh": gelu_tanh,
    "swiglu": lambda x: x / (1 + torch.exp(-x)),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.usefixtures("float64")
def test_the_formula(randomised, activation, bias):
    network = randomised(FeedForward(D, D_FF, activation=activation, bias=bias))
    w1, w2, x = network.linear1, network.linear2, torch.randn(2, 3, D)
    assert (w1.bias is not None) == (w2.bias is not None) == bias
    hidden = BENDS[activation](F.linear(x, w1.weight, w1.bias))
    assert_close(network(x), F.linear(hidden, w2.weight, w2.bias))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.usefixtures("float64")
def test_the_formula_with_a_gate(randomised, gate, bias):
    network = randomised(GatedFeedForward(D, D_FF, gate=gate, bias=bias))
    w1, w3, w2 = network.gate_proj, network.up_proj, network.down_proj
    assert all((w.bias is not None) == bias for w in (w1, w3, w2))
    x = torch.randn(2, 3, D)
    gates = OF_GATES[gate](F.linear(x, w1.weight, w1.bias))
    hidden = gates * F.linear(x, w3.weight, w3.bias)
    assert_close(network(x), F.linear(hidden, w2.weight, w2.bias))


def test_the_papers_network_has_a_relu_and_biases_todays_neither():
    assert FeedForward(D, D_FF).activation == "relu"
    assert FeedForward(D, D_FF).linear2.bias is not None
    assert GatedFeedForward(D, D_FF).gate == "swiglu"
    assert GatedFeedForward(D, D_FF).down_proj.bias is None


@BOTH
def test_dropout_is_of_inner_numbers_and_for_training(kind):
    network, whole = (kind(D, 1, dropout=p, bias=False) for p in (0.5, 0.0))
    whole.load_state_dict(network.state_dict())
    x = torch.randn(1, 200, D)
    output, wanted = network(x), whole(x)
    # With one inner number a position is dropped whole, or doubled.
    kept = (output != 0).any(dim=-1)
    alive = (wanted != 0).any(dim=-1)
    assert 0.3 < kept[alive].float().mean() < 0.7
    assert_close(output[kept], 2 * wanted[kept])
    network.eval()
    assert torch.equal(network(x), wanted)


@pytest.mark.usefixtures("float64")
def test_the_clamped_formula(randomised):
    network = randomised(ClampedFeedForward(D, D_FF, limit=0.5, alpha=1.3))
    w1, w3, w2 = network.gate_proj, network.up_proj, network.down_proj
    x = torch.randn(2, 3, D)
    gate, up = F.linear(x, w1.weight, w1.bias), F.linear(x, w3.weight, w3.bias)
    assert gate.max() > 0.5 > -0.5 > gate.min()
    gate = torch.where(gate > 0.5, 0.5, gate)
    up = torch.where(up.abs() > 0.5, 0.5 * up.sign(), up)
    hidden = (up + 1) * gate / (1 + torch.exp(-1.3 * gate))
    assert_close(network(x), F.linear(hidden, w2.weight, w2.bias))


def test_clamped_by_hand():
    """Up is bounded on both sides, the gate above only: below, SiLU does it."""
    gate = torch.tensor([9.0, -9.0, 2.0]).double()
    up = torch.tensor([-9.0, 9.0, 0.0]).double()
    wanted = [(1 - 7) * 7 / (1 + math.exp(-1.702 * 7))]
    wanted += [8 * -9 / (1 + math.exp(1.702 * 9)), 2 / (1 + math.exp(-1.702 * 2))]
    assert_close(clamped_swiglu(gate, up), torch.tensor(wanted).double())


def test_what_the_clamped_one_refuses(raises):
    for name in ("limit", "alpha"):
        with raises(ValueError, f"{name} (0) must be above 0 and finite"):
            ClampedFeedForward(D, D_FF, **{name: 0})
