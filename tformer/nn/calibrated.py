"""Weights rounded so that a layer's outputs on some texts change little: GPTQ, AWQ.

N tokens of the texts · O outputs · I inputs · g inputs with one scale
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tformer.checks import check_above_0
from tformer.nn.quantized import dequantize, quantize

ALPHAS = tuple(i / 20 for i in range(21))  # the grid of Lin et al.


def gptq(
    weight: Tensor,
    inputs: Tensor,
    *,
    bits: int = 4,
    group_size: int | None = None,
    damping: float = 0.01,
    act_order: bool = False,
) -> tuple[Tensor, Tensor]:
    """Round column after column, and move the columns to come so as to make up for it.

    With H = XᵀX + λ 1 and the upper factor U of H⁻¹ = UᵀU, column i of the weights
    becomes s · round(w / s), and of each later column j, (w − s · round(w / s)) /
    Uᵢᵢ · Uᵢⱼ is taken off: then the later ones are those of the least error of the
    outputs, given what is rounded (Frantar et al. 2023, arXiv:2210.17323, section 4;
    optimal brain quantisation with one order for all rows).

    The scales are those of `quantize`, so that the codes alone differ from rounding to
    nearest. In the paper a group's scale is that of the weights as moved so far.

    Args:
        weight: (O, I), of a linear layer.
        inputs: (N, I), what went into it.
        bits: from 2 to 8.
        group_size: g; divides I. One scale an output if not given.
        damping: λ, as a share of the mean of H's diagonal; above 0.
        act_order: begin with the columns of the largest inputs, when most others can
            still make up for them (`desc_act` of libraries).

    Returns:
        codes, int8 (O, I), and scales (O, I / g), for `dequantize`.
    """
    _check(weight, inputs)
    check_above_0(damping=damping)
    codes, scales = quantize(weight, bits, group_size)
    I = weight.shape[1]
    X = inputs.detach().double()
    H = X.T @ X  # (I, I)
    sizes = H.diagonal().clone()
    H.diagonal().add_(damping * sizes.mean())
    order = torch.arange(I, device=weight.device)
    if act_order:
        order = sizes.argsort(descending=True, stable=True)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(H[order][:, order]))
    U = torch.linalg.cholesky(inverse, upper=True)  # (I, I)
    steps = scales.double().repeat_interleave(I // scales.shape[1], dim=1)  # (O, I)
    steps = steps.masked_fill(steps == 0, 1.0)
    most = 2 ** (bits - 1) - 1
    left = weight.detach().double()[:, order]  # a copy: what is still to be rounded
    for i, column in enumerate(order):
        step = steps[:, column]  # (O,)
        code = (left[:, i] / step).round().clamp(-most, most)
        codes[:, column] = code.to(codes.dtype)
        error = (left[:, i] - step * code) / U[i, i]
        left[:, i + 1 :] -= torch.outer(error, U[i, i + 1 :])
    return codes, scales


def awq(
    weight: Tensor,
    inputs: Tensor,
    *,
    bits: int = 4,
    group_size: int | None = None,
    alphas: Sequence[float] = ALPHAS,
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Multiply columns with large inputs before rounding, and divide their inputs.

    Column i times fᵢ = (mean |xᵢ|)^α has about the same rounding error as before, while
    its scale stays; its inputs, over an fᵢ above 1, make less of it. α is the one of
    the grid with the smallest error of the outputs (Lin et al. 2024, arXiv:2306.00978,
    section 3.2, equations 4 and 5; their clipping of the scales is left out).

    Args:
        weight: (O, I), of a linear layer.
        inputs: (N, I), what went into it.
        bits: from 2 to 8.
        group_size: g; divides I. One scale an output if not given.
        alphas: the grid; 0 is rounding to nearest.

    Returns:
        codes, int8 (O, I), and scales (O, I / g), for `dequantize`, which give the
        weights times the factors; the factors (I,), of a geometric mean of 1; and the α
        that was taken. The layer computes with the inputs over the factors.
    """
    _check(weight, inputs)
    if not alphas:
        raise ValueError("alphas must not be empty")
    weight = weight.detach()
    inputs = inputs.detach().to(weight.dtype)
    size = inputs.abs().mean(dim=0)
    size = size.masked_fill(size == 0, 1.0)  # a channel that is never used
    size = size / size.log().mean().exp()
    target = inputs @ weight.T  # (N, O)

    def error_with(alpha: float) -> float:
        factors = size**alpha
        read = dequantize(*quantize(weight * factors, bits, group_size)) / factors
        return (inputs @ read.T - target).square().mean().item()

    alpha = min(alphas, key=error_with)
    factors = size**alpha
    return *quantize(weight * factors, bits, group_size), factors, alpha


def _check(weight: Tensor, inputs: Tensor) -> None:
    if inputs.dim() != 2 or inputs.shape[1] != weight.shape[1]:
        raise ValueError(
            f"inputs {tuple(inputs.shape)} must be (N, I) for a weight (O, I) of "
            f"{tuple(weight.shape)}"
        )
    if not inputs.isfinite().all() or not inputs.any():
        raise ValueError("inputs must be finite, and not all 0")
