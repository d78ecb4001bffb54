"""Hyper-connections: Sinkhorn's matrices, the layer, and what it keeps over depth."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from tformer.nn import HyperConnection, MultiHeadAttention, RMSNorm, sinkhorn

B, T, N, D = 2, 5, 3, 7


def draw(*shape):
    return torch.randn(shape, dtype=torch.float64)


def slowly(scores, rounds):
    """Divide each row, then each column, in loops, of one matrix."""
    matrix = scores.exp()
    for _ in range(rounds):
        for row in matrix:
            row /= row.sum()
        for column in matrix.T:
            column /= column.sum()
    return matrix


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_sinkhorn_is_its_definition(rounds):
    scores = draw(B, T, N, N)
    ours = sinkhorn(scores, rounds, eps=1e-14)
    assert ours.shape == scores.shape
    for b in range(B):
        for t in range(T):
            wanted = slowly(scores[b, t], rounds)
            assert_close(ours[b, t], wanted, rtol=0, atol=1e-12)


@given(size=st.integers(1, 6), far=st.floats(0, 3), seed=st.integers(0, 99))
def test_rows_and_columns_sum_to_1(size, far, seed):
    torch.manual_seed(seed)
    matrix = sinkhorn(far * draw(4, size, size), rounds=200)
    assert (matrix >= 0).all()
    for axis in (-1, -2):
        assert (matrix.sum(axis) - 1).abs().max() < 1e-3


def test_sinkhorn_of_far_scores_and_of_its_own_result():
    scores = torch.tensor([[0.0, 1e4], [-1e4, 0.0]])
    assert sinkhorn(scores).isfinite().all()
    once = sinkhorn(draw(N, N), 300)
    assert_close(sinkhorn(once.log(), 300), once, rtol=0, atol=1e-4)


def layer(**options):
    module = HyperConnection(nn.Linear(D, D), D, norm=RMSNorm(D), streams=N, **options)
    nn.init.normal_(module.base)
    nn.init.normal_(module.scale)
    return module


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("manifold", [True, False])
def test_the_layer_is_its_formula_and_every_weight_learns(manifold):
    module, x = layer(manifold=manifold), draw(B, T, N, D)
    output = module(x)
    assert output.shape == (B, T, N, D)
    size = (x.square().sum((-1, -2), keepdim=True) / (N * D) + 1e-6).sqrt()
    made = (x / size).flatten(-2) @ module.proj.weight.mT
    made = made if manifold else made.tanh()
    for b in range(B):
        for t in range(T):
            all_of_it = made[b, t]
            r, w = all_of_it[:N] * module.scale[0], all_of_it[N : 2 * N]
            r, w = r + module.base[:N], w * module.scale[1] + module.base[N : 2 * N]
            mix = all_of_it[2 * N :] * module.scale[2] + module.base[2 * N :]
            mix = mix.view(N, N)
            if manifold:
                r, w, mix = r.sigmoid() + 1e-6, 2 * w.sigmoid(), sinkhorn(mix)
            y = module.branch(module.norm(sum(r[j] * x[b, t, j] for j in range(N))))
            for k in range(N):
                kept = sum(mix[j, k] * x[b, t, j] for j in range(N))
                assert_close(output[b, t, k], kept + w[k] * y, rtol=0, atol=1e-11)
    output.square().sum().backward()
    for name, weight in module.named_parameters():
        assert weight.grad.abs().max() > 0, name


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("manifold", [True, False])
@pytest.mark.parametrize("streams", [1, 4])
def test_it_begins_as_a_residual_connection(manifold, streams):
    module = HyperConnection(
        nn.Linear(D, D), D, norm=RMSNorm(D), streams=streams, manifold=manifold
    )
    x = draw(B, T, D)
    wanted = (x + module.branch(module.norm(x)))[:, :, None].expand(-1, -1, streams, -1)
    alike = x[:, :, None].expand(-1, -1, streams, -1)
    assert_close(module(alike), wanted, rtol=0, atol=0.1)
    nn.init.zeros_(module.scale)
    assert_close(module(alike), wanted, rtol=0, atol=1e-2)


@pytest.mark.usefixtures("float64")
def test_on_the_manifold_no_stream_grows_and_their_sum_stays():
    """Of what is mixed: the branch adds nothing."""
    module, x = layer(rounds=300), draw(B, T, N, D)
    nn.init.zeros_(module.branch.weight)
    nn.init.zeros_(module.branch.bias)
    y = x
    for _ in range(30):
        y = module(y)
        assert y.abs().amax() <= x.abs().amax() + 1e-3
    assert_close(y.sum(-2), x.sum(-2), rtol=0, atol=1e-2)


MISTAKES = {
    "rows alone": lambda scores: scores.softmax(-1),
    "columns alone": lambda scores: scores.softmax(-2),
    "the other way": lambda scores: sinkhorn(scores, 50).mT,
    "divided without exp": lambda scores: scores / scores.sum(-1, keepdim=True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_differs(mistake):
    scores = draw(N, N)
    assert (MISTAKES[mistake](scores) - sinkhorn(scores, 50)).abs().max() > 0.01


@pytest.mark.usefixtures("float64")
def test_options_reach_the_branch():
    module = HyperConnection(MultiHeadAttention(8, 2), 8, norm=RMSNorm(8), streams=N)
    x = draw(B, T, N, 8)
    other = x.clone()
    other[:, -1] = draw(B, N, 8)
    ours, changed = (module(each, is_causal=True) for each in (x, other))
    assert_close(ours[:, :-1], changed[:, :-1], rtol=0, atol=1e-12)
    assert (module(x)[:, 0] - module(other)[:, 0]).abs().max() > 1e-3


def test_what_is_refused(raises):
    with raises(ValueError, "rounds (0) must be at least 1"):
        sinkhorn(draw(2, 2), 0)
    with raises(ValueError, "scores must be (..., N, N), not (2, 3)"):
        sinkhorn(draw(2, 3))
    with raises(ValueError, "streams (0) must be at least 1"):
        HyperConnection(nn.Linear(D, D), D, streams=0)
    rule = "(batch, length, streams = 4, d_model = 7)"
    with raises(ValueError, f"x must be {rule}, not (2, 5, 3, 7)"):
        HyperConnection(nn.Linear(D, D), D)(torch.randn(B, T, N, D))
