"""Layer normalisation: each token's vector gets mean 0 and variance 1.

B batch · T length · D d_model
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_positive


def layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Compute (x - mean) / √(variance + ε) · weight + bias over the last axis.

    Ba et al. 2016, equations 3 and 4 (arXiv:1607.06450). The variance is the biased
    one: the squares are divided by D, not by D - 1.

    Args:
        x: (..., D).
        weight: (D,), the gain.
        bias: (D,) or None.
        eps: added to the variance, so that a constant vector does not divide by zero.

    Returns:
        (..., D).
    """
    # Half precision is for storage: the square of 256 overflows float16.
    dtype = x.dtype
    x = x.to(torch.promote_types(dtype, torch.float32))
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)  # (..., 1)
    normalised = (x - mean) / torch.sqrt(variance + eps)  # (..., D)
    output = normalised * weight if bias is None else normalised * weight + bias
    return output.to(dtype)


class LayerNorm(nn.Module):
    """Layer normalisation with a learned gain and bias, of the width `d_model`.

    Args:
        d_model: width D.
        eps: added to the variance.
        bias: learn a bias too.
        fused: use torch's kernel, which does the work of `layer_norm` in one pass over
            the memory. The numbers are the same; False runs the formula.

    Raises:
        ValueError: `d_model` is below 1, or `eps` is not above 0 and finite.
    """

    def __init__(
        self, d_model: int, eps: float = 1e-5, *, bias: bool = True, fused: bool = True
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model)
        if not 0 < eps < math.inf:
            raise ValueError(f"eps ({eps}) must be above 0 and finite")
        self.eps = eps
        self.fused = fused
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (..., D) over its last axis; returns (..., D)."""
        weight, bias = self.weight, self.bias
        if x.shape[-1:] != weight.shape:
            raise ValueError(
                f"x has width {x.shape[-1]} but d_model is {len(weight)}: "
                f"x is {tuple(x.shape)}"
            )
        if self.fused:
            return F.layer_norm(x, weight.shape, weight, bias, self.eps)
        return layer_norm(x, weight, bias, self.eps)
