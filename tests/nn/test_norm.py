import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tformer import LayerNorm
from tformer.nn.norm import layer_norm

B, T, D = 2, 5, 13
FUSED = pytest.mark.parametrize("fused", [True, False])


@FUSED
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.usefixtures("float64")
def test_equals_torch(randomised, fused, bias, eps):
    theirs = randomised(nn.LayerNorm(D, eps, bias=bias))
    ours = LayerNorm(D, eps, bias=bias, fused=fused)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(B, T, D, requires_grad=True)
    output, wanted = ours(x), theirs(x)
    assert output.shape == (B, T, D)
    assert_close(output, wanted)
    gradients = [
        torch.autograd.grad(y.square().sum(), [x, *module.parameters()])
        for y, module in ((output, ours), (wanted, theirs))
    ]
    assert_close(*gradients)
    assert_close(ours(x[0, 0]), wanted[0, 0])


@FUSED
def test_known_numbers(fused):
    """(1 - 1/4) / √(3/16): the variance is divided by 4; by 3 it would be 1.5."""
    output = LayerNorm(4, fused=fused)(torch.tensor([1.0, 0, 0, 0]))
    assert output.tolist() == pytest.approx([1.7320] + [-0.5773] * 3, abs=5e-5)


def test_the_function_is_the_formula():
    x = torch.randn(3, D, dtype=torch.float64) * 4 + 2
    weight, bias = torch.randn(2, D, dtype=torch.float64)
    output = layer_norm(x, weight, bias, eps=0.1)
    for row, normalised in zip(x.tolist(), output.tolist(), strict=True):
        mean = sum(row) / D
        variance = sum((number - mean) ** 2 for number in row) / D
        wanted = [
            (number - mean) / math.sqrt(variance + 0.1) * w + b
            for number, w, b in zip(row, weight.tolist(), bias.tolist(), strict=True)
        ]
        assert normalised == pytest.approx(wanted, abs=1e-12)
    assert_close(layer_norm(x, weight, eps=0.1), output - bias)


def test_a_new_norm_has_mean_0_and_variance_1():
    output = LayerNorm(D)(torch.randn(B, T, D) * 7 + 3)
    assert_close(output.mean(dim=-1), torch.zeros(B, T), atol=1e-6, rtol=0)
    assert_close(output.var(dim=-1, correction=0), torch.ones(B, T), atol=1e-4, rtol=0)


@FUSED
def test_a_constant_vector_does_not_divide_by_zero(fused):
    x = torch.full((D,), 3.0, requires_grad=True)
    output = LayerNorm(D, fused=fused)(x)
    assert_close(output, torch.zeros(D))
    output.square().sum().backward()
    assert x.grad.isfinite().all()


@FUSED
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(fused, dtype):
    """The square of 300 is more than float16 holds."""
    x = (torch.randn(B, T, D) * 300).to(dtype)
    output = LayerNorm(D, fused=fused).to(dtype)(x)
    assert output.dtype == dtype
    wanted = LayerNorm(D)(x.float())
    tolerance = 1e-2 if dtype == torch.bfloat16 else 2e-3
    assert_close(output.float(), wanted, atol=tolerance, rtol=tolerance)


def test_the_kernel_is_taken_unless_the_formula_is_asked_for(monkeypatch):
    x = torch.randn(B, T, D)
    wanted = LayerNorm(D)(x)
    monkeypatch.setattr(torch.nn.functional, "layer_norm", lambda *_: "the kernel")
    assert LayerNorm(D)(x) == "the kernel"
    assert_close(LayerNorm(D, fused=False)(x), wanted)


def test_defaults_are_torchs():
    norm = LayerNorm(D)
    assert norm.eps == nn.LayerNorm(D).eps == 1e-5
    # Numbers so small that eps is most of their variance.
    x = torch.randn(B, T, D) / 300
    assert_close(layer_norm(x, norm.weight), nn.LayerNorm(D)(x))


def test_parameters():
    norm = LayerNorm(D)
    assert torch.equal(norm.weight, torch.ones(D))
    assert torch.equal(norm.bias, torch.zeros(D))
    assert list(LayerNorm(D, bias=False).state_dict()) == ["weight"]
    assert torch.equal(copy.deepcopy(norm)(torch.ones(D)), norm(torch.ones(D)))


class TestBadInput:
    @pytest.mark.parametrize("eps", [0, -1e-5, float("nan"), float("inf")])
    def test_eps(self, raises, eps):
        with raises(ValueError, f"eps ({eps}) must be above 0 and finite"):
            LayerNorm(D, eps)

    def test_width(self, raises):
        with raises(ValueError, "d_model (0) must be at least 1"):
            LayerNorm(0)

    @FUSED
    @pytest.mark.parametrize("width", [1, D - 1])
    def test_width_of_the_input(self, raises, fused, width):
        message = f"x has width {width} but d_model is 13: x is (2, 5, {width})"
        with raises(ValueError, message):
            LayerNorm(D, fused=fused)(torch.randn(B, T, width))
