"""Norms: each token's vector is brought to one length.

D d_model, or the width of a head
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_above_0, check_positive, check_width


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

    torch's kernel computes what `layer_norm` does, and writes only the output.

    Args:
        d_model: width D.
        eps: added to the variance.
        bias: learn a bias too.
    """

    def __init__(self, d_model: int, eps: float = 1e-5, *, bias: bool = True) -> None:
        super().__init__()
        check_positive(d_model=d_model)
        check_above_0(eps=eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (..., D) over its last axis; returns (..., D)."""
        weight = self.weight
        check_width(len(weight), x)
        return F.layer_norm(x, weight.shape, weight, self.bias, self.eps)


def rms_norm(
    x: Tensor, gain: Tensor | None, eps: float = 1e-6, *, cast_first: bool = False
) -> Tensor:
    """Compute x / √(mean(x²) + ε) · gain over the last axis.

    Zhang and Sennrich 2019, equation 4 (arXiv:1910.07467). Layer normalisation without
    the mean and without a bias.

    Args:
        x: (..., D).
        gain: (D,), or None, which is 1.
        eps: added to the mean square, so that a vector of zeros does not divide by 0.
        cast_first: of half precision. False: multiply by the gain in float32, then
            round, as torch, Gemma and gpt-oss do; True: round, then multiply in half
            precision, as Llama's code does, which rounds a second time.

    Returns:
        (..., D), in the dtype of x.
    """
    # Half precision is for storage: the square of 256 overflows float16.
    dtype = x.dtype
    wide = torch.promote_types(dtype, torch.float32)
    x = x.to(wide)
    mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
    normalised = x * torch.rsqrt(mean_square + eps)  # (..., D)
    if gain is None:
        return normalised.to(dtype)
    if cast_first:
        return normalised.to(dtype) * gain.to(dtype)
    return (normalised * gain.to(wide)).to(dtype)


class RMSNorm(nn.Module):
    """RMS normalisation with a learned gain, of the width `d_model`.

    Args:
        d_model: width D.
        eps: added to the mean square.
        plus_one: learn w, which begins at 0, and multiply by 1 + w, as Gemma does, so
            that weight decay draws the gain towards 1. Else multiply by w, which begins
            at 1.
        cast_first: as in `rms_norm`.
        learned: without, there is no w, and the gain is 1 (nanochat).
    """

    def __init__(
        self,
        d_model: int,
        eps: float = 1e-6,
        *,
        plus_one: bool = False,
        cast_first: bool = False,
        learned: bool = True,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model)
        check_above_0(eps=eps)
        self.d_model, self.eps = d_model, eps
        self.plus_one, self.cast_first = plus_one, cast_first
        begin = torch.zeros if plus_one else torch.ones
        self.weight = nn.Parameter(begin(d_model)) if learned else None

    def gain(self) -> Tensor | None:
        """Return what is multiplied by, (D,): w, or 1 + w in float32 or wider.

        In bfloat16 the step from 1 to the next number is 1/128: 1 + w would lose most
        of a small w.
        """
        if self.weight is None or not self.plus_one:
            return self.weight
        return 1 + self.weight.to(torch.promote_types(self.weight.dtype, torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (..., D) over its last axis; returns (..., D)."""
        check_width(self.d_model, x)
        return rms_norm(x, self.gain(), self.eps, cast_first=self.cast_first)
