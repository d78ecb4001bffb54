"""A linear layer, by the faster of the two libraries that torch has for it on a CPU.

N positions · I input features · O output features
"""

import functools
import platform
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.compiler import is_compiling


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x Wᵀ + b: x (..., I), weight (O, I) and bias (O,) to (..., O).

    A convolution of width 1 is a linear layer at every position (Vaswani et al. 2017,
    section 3.3). On an AMD processor torch hands large float32 products to MKL, which
    there takes twice as long as oneDNN, to which it hands convolutions.
    """
    if is_compiling() or x.dtype != torch.float32 or x.device.type != "cpu":
        return F.linear(x, weight, bias)
    (O, I), N = weight.shape, x.numel() // max(1, weight.shape[1])
    # Measured: below these sizes the weights' new layout costs more than it saves.
    large = N >= 64 and N * I >= 2**15 and N * I * O >= 2**23
    if not large or torch.is_autocast_enabled("cpu") or not onednn_is_faster():
        return F.linear(x, weight, bias)
    image = x.reshape(1, N, 1, I).permute(0, 3, 1, 2)  # (1, I, N, 1), no copy
    # One pixel has no neighbours to dilate to; torch asks oneDNN only if it is dilated.
    image = F.conv2d(image, weight[:, :, None, None], bias, dilation=2)  # (1, O, N, 1)
    return image.permute(0, 2, 3, 1).reshape(*x.shape[:-1], O)  # (..., O)


@functools.cache
def onednn_is_faster() -> bool:
    """Say whether this is an AMD processor, and torch has both MKL and oneDNN."""
    file = Path("/proc/cpuinfo")
    name = file.read_text(errors="replace") if file.exists() else platform.processor()
    libraries = torch.backends.mkl, torch.backends.mkldnn
    return "AuthenticAMD" in name and all(x.is_available() for x in libraries)


class Linear(nn.Linear):
    """`nn.Linear` by `linear`: the same parameters, the same numbers."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        return linear(input, self.weight, self.bias)
