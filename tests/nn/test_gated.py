"""The gated feed-forward network: its formula, torch's own functions, every gate."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from tformer import FeedForward
from tformer.nn.gated import GATES, GatedFeedForward

D, D_FF = 5, 7
THEIRS = {
    "glu": lambda a, b: F.glu(torch.cat((b, a), dim=-1), dim=-1),  # b · σ(a)
    "reglu": lambda a, b: F.threshold(a, 0.0, 0.0) * b,
    "geglu": lambda a, b: a * torch.distributions.Normal(0.0, 1.0).cdf(a) * b,
    "geglu_tanh": lambda a, b: F.gelu(a, approximate="tanh") * b,
    "swiglu": lambda a, b: a / (1 + torch.exp(-a)) * b,
}


def test_every_gate_is_tested():
    assert THEIRS.keys() == GATES.keys()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.usefixtures("float64")
def test_the_formula(gate, bias):
    module = GatedFeedForward(D, D_FF, gate=gate, bias=bias)
    x = torch.randn(2, 3, D)
    w1, w3, w2 = module.gate_proj, module.up_proj, module.down_proj
    assert [tuple(w.weight.shape) for w in (w1, w3, w2)] == [
        *((D_FF, D), (D_FF, D), (D, D_FF))
    ]
    assert all((w.bias is not None) == bias for w in (w1, w3, w2))
    wanted = F.linear(
        THEIRS[gate](F.linear(x, w1.weight, w1.bias), F.linear(x, w3.weight, w3.bias)),
        w2.weight,
        w2.bias,
    )
    assert_close(module(x), wanted, atol=1e-14, rtol=1e-13)


def test_the_gates_differ():
    x, outputs = torch.randn(2, 3, D), []
    for gate in GATES:
        torch.manual_seed(0)
        outputs.append(GatedFeedForward(D, D_FF, gate=gate)(x))
    for i, one in enumerate(outputs):
        assert all(not torch.equal(one, other) for other in outputs[:i])


@pytest.mark.usefixtures("float64")
def test_gradients():
    module = GatedFeedForward(D, D_FF, bias=True)
    x = torch.randn(2, D, requires_grad=True)
    assert torch.autograd.gradcheck(module, x)


def test_as_many_parameters_as_a_network_without_a_gate():
    def count(module):
        return sum(p.numel() for p in module.parameters())

    assert count(GatedFeedForward(96, 256)) == count(FeedForward(96, 384, bias=False))


def test_every_position_alone():
    module, x = GatedFeedForward(D, D_FF), torch.randn(2, 3, D)
    assert_close(module(x)[1, 2], module(x[1, 2]))


def test_dropout():
    module, x = GatedFeedForward(D, D_FF, dropout=0.5), torch.randn(2, 3, D)
    torch.manual_seed(1)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


def test_errors(raises):
    known = ", ".join(GATES)
    with raises(ValueError, f"gate ('silu') must be one of {known}"):
        GatedFeedForward(D, D_FF, gate="silu")
    with raises(ValueError, "d_ff (0) must be at least 1"):
        GatedFeedForward(D, 0)
    with raises(ValueError, "dropout (1) must be in [0, 1)"):
        GatedFeedForward(D, D_FF, dropout=1)
