"""ReLU written over its input: the same numbers, and only where nobody sees it."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from tformer import FeedForward
from tformer.fast.linear import Linear


@pytest.fixture
def network():
    torch.manual_seed(0)
    return FeedForward(6, 10, dropout=0.5).eval()


@pytest.fixture
def in_place(monkeypatch):
    """Count the maxima that were written over their input."""
    calls = []
    relu = torch.Tensor.relu_
    monkeypatch.setattr(torch.Tensor, "relu_", lambda x: calls.append(1) or relu(x))
    return calls


def formula(network, x):
    one, two = network.linear1, network.linear2
    hidden = F.relu(F.linear(x, one.weight, one.bias))
    return F.linear(hidden, two.weight, two.bias)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_equals_the_formula_and_leaves_x(network, in_place, dtype):
    network, x = network.to(dtype), torch.randn(2, 3, 6).to(dtype)
    before = x.clone()
    with torch.no_grad():
        assert_close(network(x), formula(network, x))
    assert len(in_place) == 1
    assert torch.equal(x, before)


def test_nan_stays(network, in_place):
    x = torch.randn(1, 2, 6)
    x[0, 1, 3] = torch.nan
    with torch.inference_mode():
        y = network(x)
    assert in_place
    assert y[0, 0].isfinite().all()
    assert y[0, 1].isnan().all()


def test_in_training_the_input_stays(network, in_place):
    x = torch.randn(2, 3, 6)
    network(x).sum().backward()
    assert not in_place


@pytest.mark.parametrize("activation", ["gelu", "relu2"])
def test_no_other_activation(in_place, activation):
    with torch.no_grad():
        FeedForward(6, 10, activation=activation)(torch.randn(1, 2, 6))
    assert not in_place


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_hook_sees_what_the_first_layer_wrote(network, in_place, everywhere):
    seen, x = [], torch.randn(2, 3, 6)

    def keep(module, _, y):
        if module is network.linear1:
            seen.append(y)

    if everywhere:
        handle = nn.modules.module.register_module_forward_hook(keep)
    else:
        handle = network.linear1.register_forward_hook(keep)
    with torch.no_grad():
        network(x)
        assert_close(seen[0], network.linear1(x))
        assert (seen[0] < 0).any()
        handle.remove()
        assert not in_place
        network(x)
    assert in_place


def test_a_layer_of_somebody_else_keeps_what_it_returns(in_place):
    """An identity returns its input, which the caller still has."""
    network = FeedForward(6, 6)
    network.linear1 = nn.Identity()
    x = torch.randn(2, 3, 6)
    before = x.clone()
    with torch.no_grad():
        network(x)
    assert not in_place
    assert torch.equal(x, before)


def test_a_forward_that_was_replaced_keeps_what_it_returns(network, in_place):
    kept = torch.randn(2, 3, 10)
    before = kept.clone()
    network.linear1.forward = lambda _: kept
    with torch.no_grad():
        network(torch.randn(2, 3, 6))
    assert not in_place
    assert torch.equal(kept, before)


def test_dropout_of_inference_is_kept(network, in_place):
    """In training mode without gradients, as in Monte Carlo dropout, numbers drop."""
    x = torch.randn(2, 3, 6)
    with torch.no_grad():
        one, two = network.train()(x), network(x)
    assert in_place
    assert not torch.equal(one, two)


def test_vmap(network, in_place):
    x = torch.randn(4, 2, 3, 6)
    with torch.no_grad():
        assert_close(torch.vmap(network.eval())(x), formula(network, x))


def test_the_first_layer_is_the_one_that_is_known(network):
    assert type(network.linear1) is Linear
