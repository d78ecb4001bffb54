"""MXFP4: weights as floating-point numbers of four bits, 32 with a power of two.

I numbers, a multiple of 32 · 32 of a block
"""

import torch
from torch import Tensor

from tformer.checks import check_divisible

BLOCK = 32
# What E2M1 can say: a sign bit, two bits of exponent, one bit of fraction.
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BIAS = 127  # of E8M0: the byte b stands for 2^(b − 127); 255 is no number


def round_to_e2m1(x: Tensor) -> Tensor:
    """Round to the nearest of 0, ±0.5, ±1, ±1.5, ±2, ±3, ±4 and ±6.

    Halfway between two, to the one whose bit of fraction is 0; beyond 6, to 6 (OCP
    Microscaling Formats v1.0, section 5.3.3, and its rounding roundTiesToEven).
    """
    size = x.abs()
    # Neighbours are 0.5 apart below 2, 1 from 2 on, 2 from 4 on.
    step = torch.where(size < 2, 0.5, torch.where(size < 4, 1.0, 2.0)).to(x.dtype)
    return ((size / step).round() * step).clamp(max=E2M1[-1]).copysign(x)


def quantize_mxfp4(x: Tensor) -> tuple[Tensor, Tensor]:
    """Give each 32 neighbours one scale, 2^(⌊log₂ max |x|⌋ − 2), and round to E2M1.

    The largest number of a block, from 2^−125 on, is then below 8 scales, and at least
    4. From 6 to 8 there is nothing but 6, so it may move by a quarter of itself (OCP
    Microscaling Formats v1.0, section 6.3; Rouhani et al. 2023, arXiv:2310.10537,
    algorithm 1).

    Args:
        x: (..., I) of numbers that are finite in float32; 32 divides I.

    Returns:
        codes, uint8 (..., I) from 0 to 15: the sign in the highest of four bits, then
        exponent and fraction; and scales, uint8 (..., I / 32): E8M0.
    """
    check_divisible(width=x.shape[-1], block=BLOCK)
    x = x.float()
    if not x.isfinite().all():
        raise ValueError("x must be finite in float32: E2M1 has no infinity and no NaN")
    blocks = x.reshape(*x.shape[:-1], -1, BLOCK)  # (..., I / 32, 32)
    largest = blocks.abs().amax(dim=-1, keepdim=True)
    exponent = largest.frexp().exponent - 1 - 2  # ⌊log₂ largest⌋ − ⌊log₂ 6⌋
    exponent = exponent.masked_fill(largest == 0, -BIAS).clamp(min=-BIAS)
    rounded = round_to_e2m1(torch.ldexp(blocks, -exponent))
    table = torch.tensor(E2M1, device=x.device)
    codes = torch.bucketize(rounded.abs(), table) + 8 * rounded.signbit()
    scales = (exponent[..., 0] + BIAS).to(torch.uint8)
    return codes.flatten(-2).to(torch.uint8), scales


def dequantize_mxfp4(
    codes: Tensor, scales: Tensor, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Read what `quantize_mxfp4` made: (..., I) in `dtype`."""
    both_signs = torch.tensor([*E2M1, *(-x for x in E2M1)], device=codes.device)
    blocks = both_signs[codes.long()].reshape(*scales.shape, BLOCK)
    return torch.ldexp(blocks, scales[..., None].int() - BIAS).flatten(-2).to(dtype)
