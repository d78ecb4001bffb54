"""Experts: two forms are equal, gradients, the loss and the bias that balance."""

import copy
import itertools

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from tformer.nn import (
    Experts,
    FeedForward,
    GatedFeedForward,
    Router,
    active_parameters,
    expert_counts,
    load_balance_loss,
    record_routing,
    route,
)
from tformer.nn.router import SCORES

B, T, D, D_FF, E, K = 2, 11, 5, 7, 6, 3
EXACT = {"atol": 1e-14, "rtol": 1e-13}


def small(**options) -> Experts:
    options = {"top_k": K, **options}
    module = Experts(D, E, lambda: GatedFeedForward(D, D_FF), **options)
    nn.init.normal_(module.router.proj.weight)
    return module


def by_token(module, x):
    """The definition: one token, and one of its experts, at a time."""
    y = torch.zeros_like(x)
    for b, t in itertools.product(range(B), range(T)):
        _, chosen, weights = module.router(x[b, t])
        for i, weight in zip(chosen.tolist(), weights, strict=True):
            y[b, t] = y[b, t] + weight * module.experts[i](x[b, t])
    return y


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.usefixtures("float64")
def test_is_its_definition(scores, renormalise):
    module = small(scores=scores, renormalise=renormalise, scale=1.7)
    module.router.selection_bias.data.copy_(torch.randn(E) / 4)
    x = torch.randn(B, T, D, requires_grad=True)
    assert (expert_counts(module.router(x).chosen, E) > 0).sum() > K
    outputs = module(x), by_token(module, x)
    assert_close(*outputs, **EXACT)
    loss = torch.randn(B, T, D)
    inputs = [x, *(p for p in module.parameters() if p.requires_grad)]
    gradients = [
        torch.autograd.grad(y, inputs, loss, materialize_grads=True) for y in outputs
    ]
    assert_close(*gradients, atol=1e-13, rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_shared():
    shared, x = FeedForward(D, 3), torch.randn(B, T, D)
    module = small(shared=shared)
    with_it = module(x)
    module.shared = None
    assert_close(with_it, module(x) + shared(x), **EXACT)


def test_an_expert_without_tokens_has_a_gradient_of_0():
    module = small()
    with torch.no_grad():
        module.router.selection_bias[2] = -1e9
    module(torch.randn(B, T, D)).sum().backward()
    for i, each in enumerate(module.experts):
        assert all(p.grad.any() == (i != 2) for p in each.parameters()), i


def test_smallest_case():
    logits = torch.tensor([[2.0, 0, 1, -1], [0, 3, 0.5, 0]]).double()
    s = logits.softmax(-1)
    scores, chosen, weights = route(logits, 2)
    assert_close(scores, s, **EXACT)
    assert chosen.tolist() == [[0, 2], [1, 2]]
    assert_close(weights[0, 0], 1 / (1 + torch.tensor(-1.0).double().exp()), **EXACT)
    assert_close(weights.sum(-1), torch.ones(2).double(), **EXACT)
    plain = route(logits, 2, renormalise=False, scale=2.5).weights
    assert_close(plain, 2.5 * s.gather(-1, chosen), **EXACT)
    sigmoids = route(logits, 2, scores="sigmoid", renormalise=False)
    assert_close(sigmoids.weights, logits.gather(-1, chosen).sigmoid(), **EXACT)


@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.usefixtures("float64")
def test_the_bias_chooses_and_does_not_weigh(scores):
    logits, bias = torch.randn(B, T, E), torch.randn(E)
    plain = route(logits, K, scores=scores, renormalise=False)
    biased = route(logits, K, scores=scores, renormalise=False, bias=bias)
    assert not torch.equal(plain.chosen, biased.chosen)
    assert torch.equal(biased.weights, plain.scores.gather(-1, biased.chosen))
    assert torch.equal(biased.chosen, (plain.scores + bias).topk(K).indices)


def test_half_precision_is_scored_in_float32():
    logits = torch.randn(B, T, E).bfloat16()
    ours = route(logits, K)
    assert ours.weights.dtype == torch.float32
    assert torch.equal(ours.weights, route(logits.float(), K).weights)
    module = small().bfloat16()
    assert module(torch.randn(B, T, D).bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert small()(torch.randn(B, T, D)).isfinite().all()


def test_scores_that_are_all_0():
    weights = route(torch.full((1, E), -1e4), K, scores="sigmoid").weights
    assert torch.equal(weights, torch.zeros(1, K))


def test_fractions_are_not_rounded_to_float32():
    assert load_balance_loss(torch.eye(3).double(), torch.arange(3)[:, None]) == 1


@pytest.mark.parametrize("k", [1, 2, E])
@pytest.mark.usefixtures("float64")
def test_the_formula_of_the_loss(k):
    scores, chosen, _ = route(torch.randn(B, T, E), k, scores="sigmoid")
    f, P = torch.zeros(E), torch.zeros(E)
    for b, t in itertools.product(range(B), range(T)):
        P += scores[b, t] / scores[b, t].sum() / (B * T)
        for i in chosen[b, t]:
            f[i] += 1 / (B * T * k)
    assert_close(load_balance_loss(scores, chosen), E * (f @ P), **EXACT)


class TestBalanceRate:
    def test_one_step(self):
        router = Router(D, 4, top_k=1, balance_rate=0.25)
        router.balance(torch.tensor([[0], [0], [0], [1], [2], [2], [2], [2]]))
        assert router.selection_bias.tolist() == [-0.25, 0.25, -0.25, 0.25]
        router.balance(torch.tensor([[0], [1], [2], [3]]))  # as it should be: no step
        assert router.selection_bias.tolist() == [-0.25, 0.25, -0.25, 0.25]

    def test_padding_does_not_count(self):
        x, mask = torch.randn(B, T, D), torch.arange(T) < torch.tensor([[2], [T]])
        alone, padded, counted = (small(balance_rate=0.1) for _ in range(3))
        for module in (padded, counted):
            module.load_state_dict(alone.state_dict())
        x[~mask] = x[0, 0].clone()  # so that padding would load some experts
        alone(x[mask]).sum().backward()
        padded(x, mask).sum().backward()
        counted(x).sum().backward()
        wanted = alone.router.selection_bias
        assert torch.equal(padded.router.selection_bias, wanted)
        assert not torch.equal(counted.router.selection_bias, wanted)

    @pytest.mark.parametrize("reentrant", [False, True])
    def test_under_checkpointing(self, reentrant):
        """Computed once more in the backward pass, it chooses the same, moves once."""
        x = torch.randn(B, T, D, requires_grad=True)
        plain = small(balance_rate=5.0)  # one step would change every choice
        again = copy.deepcopy(plain)
        plain(x).square().sum().backward()
        checkpoint(again, x, use_reentrant=reentrant).square().sum().backward()
        for ours, theirs in zip(again.parameters(), plain.parameters(), strict=True):
            assert torch.equal(ours, theirs)
            if theirs.requires_grad:
                assert_close(ours.grad, theirs.grad)
        assert plain.router.selection_bias.abs().max() == 5

    def test_only_in_training_and_only_with_a_rate(self):
        x = torch.randn(B, T, D)
        for rate, training in itertools.product((0.0, 0.1), (False, True)):
            module = small(balance_rate=rate).train(training)
            module(x).sum().backward()
            bias = module.router.selection_bias
            assert bias.any() == (training and rate > 0)
            assert bias.grad is None
            assert torch.equal(module.state_dict()["router.selection_bias"], bias)


def test_record_routing():
    model = nn.Sequential(small(), nn.Tanh(), small(top_k=1))
    x = torch.randn(B, T, D)
    with record_routing(model) as routings:
        y = model(x)
    assert list(routings) == ["0.router", "2.router"]
    assert torch.equal(routings["0.router"].chosen, model[0].router(x).chosen)
    assert routings["2.router"].weights.shape == (B, T, 1)
    assert torch.equal(y, model(x))
    before = routings["2.router"]
    model(2 * x)
    assert routings["2.router"] is before
    sum(load_balance_loss(r.scores, r.chosen) for r in routings.values()).backward()
    assert model[2].router.proj.weight.grad.any()


def test_active_parameters():
    one = 3 * D * D_FF
    model = nn.Sequential(small(shared=nn.Linear(D, D)), nn.Linear(D, D))
    linear = D * D + D
    assert active_parameters(model) == K * one + E * D + E + 2 * linear
    assert active_parameters(nn.Linear(D, D)) == linear
