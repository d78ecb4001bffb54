"""GPTQ and AWQ: against solving anew for each column, and against every choice."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from tformer.nn import awq, dequantize, gptq, quantize

O, I, N = 3, 12, 40


def layer(width=I, outputs=O):
    """Return weights and inputs whose columns go together, some larger than others."""
    torch.manual_seed(0)
    mixing = torch.randn(width, width, dtype=torch.float64)
    inputs = torch.randn(N, width, dtype=torch.float64) @ mixing
    inputs[:, 2] *= 5
    return torch.randn(outputs, width, dtype=torch.float64), inputs


def error(weight, inputs, read):
    return ((read - weight) @ inputs.T).square().sum().item()


def solved_anew(weight, inputs, scales, bits, damping, order):
    """Round column after column; before each, solve for all that are left."""
    H = inputs.T @ inputs
    H += damping * H.diagonal().mean() * torch.eye(len(H))
    steps = scales.repeat_interleave(len(H) // scales.shape[1], dim=1)
    most = 2 ** (bits - 1) - 1
    moved = weight.clone()
    codes = torch.zeros_like(weight)
    for i, column in enumerate(order):
        done, left = order[:i], order[i:]
        off = moved[:, done] - weight[:, done]
        best = torch.linalg.solve(H[left][:, left], -H[left][:, done] @ off.T).T
        now = weight[:, column] + best[:, 0]
        codes[:, column] = (now / steps[:, column]).round().clamp(-most, most)
        moved[:, column] = codes[:, column] * steps[:, column]
    return codes.to(torch.int8)


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize("group_size", [None, 4])
@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("damping", [0.01, 0.1])
def test_gptq_is_solving_anew_for_each_column(bits, group_size, act_order, damping):
    weight, inputs = layer()
    given = {"bits": bits, "group_size": group_size}
    codes, scales = gptq(weight, inputs, **given, damping=damping, act_order=act_order)
    assert torch.equal(scales, quantize(weight, bits, group_size)[1])
    order = torch.arange(I)
    if act_order:
        order = inputs.square().sum(0).argsort(descending=True)
    expected = solved_anew(weight, inputs, scales, bits, damping, order.tolist())
    assert torch.equal(codes, expected)
    nearest = quantize(weight, bits, group_size)[0]
    assert not torch.equal(codes, nearest)


def test_between_rounding_to_nearest_and_the_best_of_all_codes():
    weight, inputs = layer(width=6, outputs=1)
    codes, scales = gptq(weight, inputs, bits=2, damping=1e-6)
    every = torch.tensor([*product((-1, 0, 1), repeat=6)])
    best = min(error(weight, inputs, dequantize(row[None], scales)) for row in every)
    found = error(weight, inputs, dequantize(codes, scales))
    nearest = dequantize(*quantize(weight, 2))
    assert best <= found < error(weight, inputs, nearest)


def test_with_inputs_that_have_nothing_to_do_with_each_other_gptq_is_the_nearest():
    weight, _ = layer()
    inputs = torch.eye(I, dtype=torch.float64) * torch.arange(1, I + 1)
    codes, _ = gptq(weight, inputs, bits=3)
    assert torch.equal(codes, quantize(weight, 3)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_input_that_is_always_zero(dtype):
    weight, inputs = (x.to(dtype) for x in layer())
    inputs[:, 5] = 0
    weight[1] = 0
    inputs = inputs.float().requires_grad_()  # as a model in training gives them
    codes, scales = gptq(weight, inputs, bits=4)
    assert not scales.requires_grad
    assert scales.dtype == dtype
    assert not codes[1].any()
    codes, scales, factors, _ = awq(weight, inputs, bits=4)
    assert scales.dtype == factors.dtype == dtype
    assert (dequantize(codes, scales) / factors).isfinite().all()


def test_awq_takes_the_best_of_its_grid():
    weight, inputs = layer()
    inputs[:, 2] *= 20
    given = {"bits": 3, "group_size": 4}
    errors = {}
    for alpha in (0.0, 0.25, 0.5, 0.75, 1.0):
        codes, scales, factors, taken = awq(weight, inputs, **given, alphas=[alpha])
        assert taken == alpha
        read = dequantize(codes, scales) / factors
        errors[alpha] = error(weight, inputs, read)
        if alpha == 0:
            assert torch.equal(read, dequantize(*quantize(weight, 3, 4)))
        size = inputs.abs().mean(0) ** alpha
        assert_close(factors / factors[0], size / size[0])
        assert_close(factors.log().mean(), factors.new_zeros(()))  # no scale grows
    *_, taken = awq(weight, inputs, **given, alphas=list(errors))
    assert taken == min(errors, key=errors.get)
    assert 0 < taken < 1


@pytest.mark.parametrize("method", [gptq, awq])
def test_what_is_refused(method):
    weight, inputs = layer()
    for bad in (inputs[:, 1:], inputs[0], inputs[None]):
        with pytest.raises(ValueError, match=r"must be \(N, I\) for a weight"):
            method(weight, bad)
    for bad in (inputs * 0, inputs * torch.nan, inputs[:0]):
        with pytest.raises(ValueError, match="inputs must be finite, and not all 0"):
            method(weight, bad)


def test_options_that_are_refused():
    weight, inputs = layer()
    with pytest.raises(ValueError, match=r"damping \(0\)"):
        gptq(weight, inputs, damping=0)
    with pytest.raises(ValueError, match="alphas must not be empty"):
        awq(weight, inputs, alphas=[])
