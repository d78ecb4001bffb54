import numpy as np
import pytest
import torch

from tformer import reference
from tformer.nn.experts import Experts
from tformer.nn.feed_forward import FeedForward
from tformer.nn.gated import GatedFeedForward
from tformer.nn.router import expert_counts, load_balance_loss, route
from tformer.reference import experts as twins

B, T, D, F, E, K = 2, 5, 7, 11, 6, 3


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
@pytest.mark.parametrize("renormalise", [False, True])
def test_experts(parity, scores, renormalise, shared):
    module = Experts(
        D,
        E,
        lambda: GatedFeedForward(D, F, gate="geglu"),
        shared=FeedForward(D, F) if shared else None,
        top_k=K,
        scores=scores,
        renormalise=renormalise,
        scale=2.5,
    )
    module = parity.module(module)
    tensor = parity.numbers(E)[1]
    module.router.selection_bias.data.copy_(tensor / 4)
    twin = reference.from_torch(module)
    assert isinstance(twin, reference.Experts)
    x, tensor = parity.numbers(B, T, D)
    theirs = module.router(tensor)
    np.testing.assert_array_equal(twin.route(x).chosen, theirs.chosen.numpy())
    assert not np.array_equal(
        theirs.chosen, reference.route(twin.router(x), K, scores=scores).chosen
    )
    parity.same(twin.route(x).weights, theirs.weights)
    parity.same(twin(x), module(tensor))


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
@pytest.mark.parametrize("k", [1, 4])
def test_load_balance_loss(parity, scores, k):
    logits, tensor = parity.numbers(B, T, E)
    ours = reference.route(logits, k, scores=scores)
    theirs = route(tensor, k, scores=scores)
    parity.same(
        reference.load_balance_loss(ours.scores, ours.chosen),
        load_balance_loss(theirs.scores, theirs.chosen),
    )
    np.testing.assert_array_equal(
        twins.expert_counts(ours.chosen, E), expert_counts(theirs.chosen, E).numpy()
    )


def test_sigmoids_that_are_all_0():
    with np.errstate(all="raise", under="ignore"):
        weights = reference.route(np.full((1, E), -1e4), K, scores="sigmoid").weights
    np.testing.assert_array_equal(weights, np.zeros((1, K)))


@pytest.mark.parametrize(
    ("top_k", "scores", "message"),
    [
        (7, "softmax", "top_k (7) must be in [1, num_experts = 6]"),
        (0, "softmax", "top_k (0) must be in [1, num_experts = 6]"),
        (2, "relu", "scores ('relu') must be one of softmax, sigmoid"),
    ],
)
def test_errors(same_error, top_k, scores, message):
    same_error(
        lambda: reference.route(np.zeros((2, E)), top_k, scores=scores),
        lambda: route(torch.zeros(2, E), top_k, scores=scores),
        ValueError,
        message,
    )
