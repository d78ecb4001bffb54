"""MXFP4: the sixteen numbers, ties, the block's power of two, and what is refused."""

import pytest
import torch
from torch.testing import assert_close

from tformer import reference
from tformer.nn import dequantize_mxfp4, quantize_mxfp4, round_to_e2m1

NUMBERS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def test_the_nearest_of_sixteen_numbers():
    x = torch.linspace(-7, 7, 1999)
    both = torch.cat((NUMBERS, -NUMBERS))
    nearest = (x[:, None] - both).abs().amin(dim=1)
    assert_close((round_to_e2m1(x) - x).abs(), nearest, rtol=0, atol=1e-6)
    assert torch.equal(round_to_e2m1(both), both)


def test_half_way_the_even_fraction():
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    even = torch.tensor([0.0, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    assert torch.equal(round_to_e2m1(ties), even)
    assert torch.equal(round_to_e2m1(-ties), -even)


def test_a_block_by_hand():
    x = torch.zeros(2, 64)
    x[0, :4] = torch.tensor([0.7, -0.2, 0.1, 0.33])  # below 1: ⌊log₂ 0.7⌋ = −1
    x[0, 32:34] = torch.tensor([7.9, -3.4])  # ⌊log₂ 7.9⌋ = 2; 7.9 is beyond 6
    codes, scales = quantize_mxfp4(x)
    assert codes.dtype == scales.dtype == torch.uint8
    assert scales.tolist() == [[127 - 3, 127], [0, 0]]
    assert codes[0, :4].tolist() == [7, 8 + 3, 2, 5]  # 0.7 · 8 = 5.6, to 6
    read = dequantize_mxfp4(codes, scales)
    assert read[0, :4].tolist() == [0.75, -0.1875, 0.125, 0.375]
    assert read[0, 32:34].tolist() == [6.0, -3.0]
    assert not read[1].any()
    as_torch = scales.view(torch.float8_e8m0fnu).float()
    assert_close(as_torch[0], torch.tensor([0.125, 1.0]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1.0, 1e30, 1e-30, 1e-38])
def test_what_is_read_is_near_and_read_again_is_the_same(dtype, size):
    torch.manual_seed(0)
    x = (torch.randn(3, 5, 64) * size).to(dtype)
    codes, scales = quantize_mxfp4(x)
    assert codes.shape == x.shape
    assert scales.shape == (3, 5, 2)
    read = dequantize_mxfp4(codes, scales, torch.float64)
    largest = x.double().abs().unflatten(-1, (2, 32)).amax(-1, keepdim=True)
    off = (read - x.double()).abs().unflatten(-1, (2, 32))
    assert (off <= largest / 4 * (1 + 1e-6)).all()
    if size > 1e-38:  # the smallest scale is 2^-127
        again = quantize_mxfp4(read)
        assert torch.equal(again[0], codes)
        assert torch.equal(again[1], scales)


def test_the_twin_computes_the_same():
    twin = reference.quantize_mxfp4
    torch.manual_seed(1)
    x = torch.randn(2, 5, 96) * torch.logspace(-30, 30, 96)
    x[0, 0] = 0
    for ours, theirs in zip(quantize_mxfp4(x), twin(x.numpy()), strict=True):
        assert torch.equal(ours, torch.from_numpy(theirs))
    codes, scales = quantize_mxfp4(x)
    read = reference.dequantize_mxfp4(codes.numpy(), scales.numpy())
    assert torch.equal(dequantize_mxfp4(codes, scales), torch.from_numpy(read))


@pytest.mark.parametrize("bad", [torch.inf, torch.nan, 1e300])
def test_what_no_block_can_hold_is_refused(bad):
    x = torch.zeros(1, 32, dtype=torch.float64)
    x[0, 3] = bad
    with pytest.raises(ValueError, match="x must be finite in float32"):
        quantize_mxfp4(x)
    with pytest.raises(ValueError, match=r"width \(33\) must be divisible by block"):
        quantize_mxfp4(torch.zeros(1, 33))
