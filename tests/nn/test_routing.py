"""Experts in groups, routers with a bias or without one, a gate of what is shared."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer.nn import Experts, FeedForward, Router, hide_groups, route

N, D, E, K = 60, 5, 12, 3
EXACT = {"atol": 1e-14, "rtol": 1e-13}


def chosen_slowly(wanted, k, groups, top_groups):
    """Of one token: groups by the sum of their two best, then k of their experts."""
    each = len(wanted) // groups
    of_group = [sorted(wanted[g * each :][:each])[-2:] for g in range(groups)]
    best = sorted(range(groups), key=lambda g: -sum(of_group[g]))[:top_groups]
    experts = [e for g in best for e in range(g * each, (g + 1) * each)]
    return sorted(experts, key=lambda e: -wanted[e])[:k]


@pytest.mark.parametrize(("groups", "top"), [(2, 1), (3, 2), (4, 1), (6, 2)])
@pytest.mark.parametrize("shift", [0.0, -3.0])
@pytest.mark.usefixtures("float64")
def test_groups_are_chosen_before_experts(groups, top, shift):
    logits, bias = torch.randn(N, E), torch.randn(E) / 4 + shift
    options = {"scores": "sigmoid", "renormalise": False, "scale": 2.5, "bias": bias}
    s, chosen, weights = route(logits, K, groups=groups, top_groups=top, **options)
    wanted = (s + bias).tolist()
    assert chosen.tolist() == [chosen_slowly(each, K, groups, top) for each in wanted]
    assert torch.equal(weights, 2.5 * s.gather(-1, chosen))
    free = route(logits, K, **options).chosen
    assert not torch.equal(chosen, free)
    assert max(len({*each}) for each in (chosen // (E // groups)).tolist()) <= top
    every = route(logits, K, groups=groups, top_groups=groups, **options).chosen
    assert torch.equal(every, free)


def test_the_smallest_case_of_groups():
    """The group with the best expert loses to the one with the best two."""
    scores = torch.tensor([0.9, 0.1, 0.6, 0.7])
    inf = torch.inf
    assert hide_groups(scores, 2, 1).tolist() == [-inf, -inf, *scores[2:].tolist()]
    chosen = route(scores.logit(), 1, scores="sigmoid", groups=2, top_groups=1).chosen
    assert chosen.tolist() == [3]


@pytest.mark.usefixtures("float64")
def test_the_router_hands_groups_on():
    router = Router(D, E, top_k=K, groups=4, top_groups=1, scores="sigmoid")
    x = torch.randn(N, D)
    options = {"scores": "sigmoid", "groups": 4, "top_groups": 1}
    assert_close(router(x), route(router.proj(x), K, **options), **EXACT)


@pytest.mark.usefixtures("float64")
def test_a_bias_of_the_logits_is_in_the_weights_too():
    router = Router(D, E, top_k=K, bias=True, selection_bias=False)
    assert [name for name, _ in router.named_parameters()] == [
        "proj.weight",
        "proj.bias",
    ]
    x = torch.randn(N, D)
    best, chosen = (x @ router.proj.weight.T + router.proj.bias).topk(K)
    routing = router(x)
    assert torch.equal(routing.chosen, chosen)
    assert_close(routing.weights, best.softmax(-1), **EXACT)  # as gpt-oss's code


def test_a_router_in_float32_scores_tokens_of_16_bits():
    router, x = Router(D, E, top_k=K), torch.randn(N, D).bfloat16()
    nn.init.normal_(router.proj.weight)
    assert torch.equal(router(x).weights, router(x.float()).weights)


@pytest.mark.usefixtures("float64")
def test_a_gate_of_the_shared_network():
    shared, gate = FeedForward(D, 7), nn.Linear(D, 1, bias=False)
    options = {"shared": shared, "shared_gate": gate}
    module = Experts(D, 4, lambda: FeedForward(D, 3), **options)
    x = torch.randn(2, 3, D)
    output = module(x)
    module.shared_gate = None
    assert not torch.allclose(output, module(x))
    module.shared = None
    assert_close(output, module(x) + gate(x).sigmoid() * shared(x), **EXACT)


REFUSED = {
    "num_experts (12) must be divisible by groups (5)": {"groups": 5},
    "groups (0) must be at least 1": {"groups": 0},
    "top_groups (4) must be in [1, groups = 3]": {"groups": 3, "top_groups": 4},
    "top_groups (0) must be in [1, groups = 3]": {"groups": 3, "top_groups": 0},
    "groups (12) must have two experts each, not 1": {"groups": 12, "top_groups": 3},
    "top_groups (1) hold 2 experts, but top_k is 3": {"groups": 6, "top_groups": 1},
    "balance_rate (0.1) needs a selection_bias": {
        "balance_rate": 0.1,
        "selection_bias": False,
    },
}


@pytest.mark.parametrize(("message", "options"), REFUSED.items(), ids=REFUSED)
def test_what_is_refused(raises, message, options):
    with raises(ValueError, message):
        Router(D, E, top_k=K, **options)


def test_more_that_is_refused(raises):
    with raises(ValueError, "shared_gate needs shared"):
        Experts(D, 4, lambda: FeedForward(D, 3), shared_gate=nn.Linear(D, 1))
    router = Router(D, E, selection_bias=False)
    with raises(ValueError, "balance needs a selection_bias, and this router has none"):
        router.balance(torch.tensor([[0]]))


def test_gradients_are_those_of_a_free_choice_of_the_same_experts():
    torch.manual_seed(0)
    logits = torch.randn(N, E, dtype=torch.float64, requires_grad=True)
    out = torch.randn(N, K).double()
    routing = route(logits, K, groups=3, top_groups=1, scores="sigmoid", scale=2.5)
    s = logits.sigmoid().gather(-1, routing.chosen)
    wanted = 2.5 * s / s.sum(-1, keepdim=True)
    slopes = (torch.autograd.grad(y, logits, out)[0] for y in (routing.weights, wanted))
    assert_close(*slopes, **EXACT)
