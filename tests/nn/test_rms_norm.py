"""RMS normalisation: a closed form, torch's own module, 1 + w, where it rounds."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer.nn.rms_norm import RMSNorm, rms_norm

D = 7


def test_the_smallest_case():
    x = torch.tensor([3.0, 4.0, 0.0, 0.0, 0.0])  # mean square 25 / 5, root √5
    wanted = torch.tensor([3.0, 8.0, 0.0, 0.0, 0.0]) / 5**0.5
    gain = torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0])
    assert_close(rms_norm(x, gain, eps=1e-12), wanted)
    assert torch.equal(rms_norm(torch.zeros(5), gain), torch.zeros(5))


@pytest.mark.parametrize("eps", [1e-6, 0.3])
@pytest.mark.usefixtures("float64")
def test_equals_torchs_own_module(eps, randomised):
    ours, theirs = randomised(RMSNorm(D, eps)), nn.RMSNorm(D, eps)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 3, D, requires_grad=True)
    assert_close(ours(x), theirs(x), atol=1e-14, rtol=0)
    gradients = [
        torch.autograd.grad(norm(x).pow(3).sum(), [x, norm.weight])
        for norm in (ours, theirs)
    ]
    assert_close(*gradients, atol=1e-12, rtol=0)


@pytest.mark.usefixtures("float64")
def test_gradients(randomised):
    norm = randomised(RMSNorm(4, plus_one=True))
    x = torch.randn(3, 4, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: rms_norm(x, 1 + w), (x, norm.weight))


def test_one_plus_w():
    torch.manual_seed(0)
    x = torch.randn(2, D)
    plain, plus = RMSNorm(D), RMSNorm(D, plus_one=True)
    assert (plain.weight == 1).all()
    assert (plus.weight == 0).all()
    assert torch.equal(plain(x), plus(x))
    with torch.no_grad():
        plain.weight.copy_(torch.randn(D))
        plus.weight.copy_(plain.weight - 1)
    assert_close(plain(x), plus(x))
    assert torch.equal(plus.gain(), 1 + plus.weight)


def test_one_plus_w_in_bfloat16_keeps_a_small_w():
    norm = RMSNorm(D, plus_one=True).bfloat16()
    w = torch.tensor([2.0**-9] * D)
    norm.weight.data = w.bfloat16()
    assert torch.equal(norm.weight.float(), w)
    assert (1 + norm.weight == 1).all()  # lost in the sum in bfloat16
    assert torch.equal(norm.gain(), 1 + w)
    x = 2.0**9 * torch.randn(4, D).bfloat16()
    wanted = rms_norm(x.float(), 1 + w).bfloat16()
    assert torch.equal(norm(x), wanted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_where_it_rounds(dtype):
    x, gain = torch.randn(64, D).to(dtype), torch.randn(D).to(dtype)
    wide = x.float() * (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    late = rms_norm(x, gain)
    early = rms_norm(x, gain, cast_first=True)
    assert late.dtype == early.dtype == dtype
    assert torch.equal(late, (wide * gain.float()).to(dtype))
    assert torch.equal(early, wide.to(dtype) * gain)
    assert not torch.equal(late, early)
    module = RMSNorm(D, cast_first=True).to(dtype)
    module.weight.data = gain
    assert torch.equal(module(x), early)


def test_large_numbers_of_half_precision_do_not_overflow():
    x = torch.full((D,), 30_000.0).half()
    assert torch.equal(RMSNorm(D).half()(x), torch.ones(D).half())


def test_in_float32_and_above_the_order_of_the_cast_changes_nothing():
    x, gain = torch.randn(5, D), torch.randn(D)
    assert torch.equal(rms_norm(x, gain), rms_norm(x, gain, cast_first=True))


def test_the_mean_stays():
    x = torch.randn(1, 400, dtype=torch.float64)
    moved = RMSNorm(400).double()(x + 3)
    assert_close(moved.square().mean(), torch.tensor(1.0).double(), rtol=1e-6, atol=0)
    assert moved.mean() > 0.5


def test_errors(raises):
    with raises(ValueError, "d_model (0) must be at least 1"):
        RMSNorm(0)
    for eps in (0, -1.0, float("inf")):
        with raises(ValueError, f"eps ({eps}) must be above 0 and finite"):
            RMSNorm(D, eps)
    with raises(ValueError, "x has width 1 but d_model is 7: x is (2, 1)"):
        RMSNorm(D)(torch.zeros(2, 1))


def test_what_print_shows():
    assert repr(RMSNorm(D, plus_one=True)) == "RMSNorm(7, eps=1e-06, plus_one=True)"
