"""The short convolution: its definition, what it keeps, and what it refuses."""

import itertools

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from pieces import splits
from tformer.nn import ShortConvolution, short_convolution

B, T, C = 2, 7, 5
EXACT = {"atol": 1e-14, "rtol": 1e-13}


def slowly(x, weight, past):
    y, K = torch.zeros_like(x), weight.shape[1]
    for b, t, c, i in itertools.product(
        range(B), range(x.shape[1]), range(C), range(K)
    ):
        at = t - (K - 1) + i
        before = past[b, at + K - 1, c] if at < 0 else x[b, at, c]
        y[b, t, c] += weight[c, i] * before
    return y


@pytest.mark.parametrize("kernel", [1, 2, 4, 9])
@pytest.mark.usefixtures("float64")
def test_is_its_definition(kernel):
    x, weight = torch.randn(B, T, C), torch.randn(C, kernel)
    past = torch.randn(B, kernel - 1, C)
    y, after = short_convolution(x, weight, past)
    assert_close(y, slowly(x, weight, past), **EXACT)
    assert torch.equal(after, torch.cat((past, x), dim=1)[:, T:])
    nothing = torch.zeros(B, kernel - 1, C)
    assert_close(short_convolution(x, weight)[0], slowly(x, weight, nothing), **EXACT)


@pytest.mark.usefixtures("float64")
def test_is_torchs_padded_convolution():
    x, module = torch.randn(B, T, C), ShortConvolution(C, 4)
    theirs = nn.Conv1d(C, C, 4, groups=C, padding=3, bias=False)
    theirs.weight.data = module.weight.data[:, None]
    wanted = nn.functional.silu(theirs(x.mT)[..., :T].mT)
    assert_close(module(x)[0], wanted, **EXACT)


@pytest.mark.usefixtures("float64")
def test_in_every_split_of_the_text():
    x, module = torch.randn(B, 6, C), ShortConvolution(C, 4)
    whole, last = module(x)
    for pieces in splits(6):
        past, outputs, begin = None, [], 0
        for piece in pieces:
            y, past = module(x[:, begin : begin + piece], past)
            outputs.append(y)
            begin += piece
        assert_close(torch.cat(outputs, dim=1), whole, **EXACT)
        assert torch.equal(past, last)


@pytest.mark.usefixtures("float64")
def test_it_sees_itself_and_the_three_before():
    x, module = torch.randn(1, T, C, requires_grad=True), ShortConvolution(C, 4)
    (slope,) = torch.autograd.grad(module(x)[0][0, 5, 2], x)
    seen = {(t, c) for _, t, c in slope.nonzero().tolist()}
    assert seen == {(t, 2) for t in (2, 3, 4, 5)}


def test_what_is_refused(raises):
    x, module = torch.randn(B, T, C), ShortConvolution(C, 4)
    shapes = "do not fit weight (5, 4): they must be (B, T, C), (B, K - 1, C)"
    with raises(ValueError, f"x (2, 7, 5) and past (2, 2, 5) {shapes}"):
        module(x, x[:, :2])
    with raises(ValueError, f"x (2, 7, 4) and past (2, 3, 5) {shapes}"):
        short_convolution(x[..., :4], module.weight)
    with raises(ValueError, "x must be (batch, length, d_model = 5), not (2, 7, 4)"):
        module(x[..., :4])
    with raises(ValueError, "kernel (0) must be at least 1"):
        ShortConvolution(C, 0)
