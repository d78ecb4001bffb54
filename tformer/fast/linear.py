"""A linear layer that takes the faster of two code paths, and ReLU after one: x Wᵀ + b.

N positions · I input features · O output features
"""

import functools
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

# Measured: below these the weights' new layout costs more than the arithmetic saves,
# and below 20,480 inputs torch does not hand a convolution to oneDNN at all.
FEWEST_POSITIONS = 128
SMALLEST_INPUT = 2**15
SMALLEST_PRODUCT = 2**23


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x Wᵀ + b for every position.

    The same function as `F.linear`. In float32 on an AMD processor torch hands
    `F.linear` to MKL, which there reaches half of what the cores can do; a convolution
    goes to oneDNN, which reaches nearly all. A convolution with kernel size 1 *is* a
    linear layer at every position (the paper says so of its feed-forward, section 3.3),
    so large float32 products go that way, forward and backward.

    Args:
        x: (..., I).
        weight: (O, I).
        bias: (O,) or None.

    Returns:
        (..., O).

    Raises:
        ValueError: the width of `x` is not I.
    """
    O, I = weight.shape
    if x.shape[-1:] != (I,):
        raise ValueError(
            f"x must have width {I}, as weight is {tuple(weight.shape)}, "
            f"not {tuple(x.shape)}"
        )
    few = torch.compiler.is_compiling() or x.numel() < FEWEST_POSITIONS * I
    if few or not _prefers_convolution(x, N := x.numel() // I, I, O):
        return F.linear(x, weight, bias)
    # (N, I) in memory, seen as one image of N × 1 pixels with I channels: no copy.
    image = x.reshape(1, N, 1, I).permute(0, 3, 1, 2)  # (1, I, N, 1)
    # One pixel has no neighbours to dilate to; but on one thread torch hands a single
    # small image to oneDNN only if the kernel is dilated.
    kernel = weight[:, :, None, None]  # (O, I, 1, 1)
    image = F.conv2d(image, kernel, bias, dilation=2)  # (1, O, N, 1)
    return image.permute(0, 2, 3, 1).reshape(*x.shape[:-1], O)  # (..., O)


class Linear(nn.Linear):
    """`nn.Linear` by the faster code path: the same parameters, the same numbers."""

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return linear(input, self.weight, self.bias)


def relu_in_place(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make `FeedForward.forward` write max(0, x W₁ + b₁) over x W₁ + b₁ in inference.

    New memory for the inner numbers takes a CPU longer than the maximum itself. Where a
    gradient may be wanted or a hook may keep what the first layer wrote, `forward` is
    as it was.
    """

    @functools.wraps(forward)
    def in_place(self: Any, x: Tensor) -> Tensor:
        if self.activation != "relu" or torch.is_grad_enabled() or _watched(self):
            return forward(self, x)
        return self.linear2(self.dropout(self.linear1(x).relu_()))

    return in_place


def _watched(network: Any) -> bool:
    """Say whether anybody else may hold what the first layer returns."""
    first = network.linear1
    return (
        torch.compiler.is_compiling()
        or type(first) is not Linear
        or "forward" in vars(first)  # replaced, as by a library that moves weights
        or bool(first._forward_hooks)
        or bool(_has_any_global_hook())  # type: ignore[no-untyped-call]
    )


def _prefers_convolution(x: Tensor, N: int, I: int, O: int) -> bool:
    return (
        N * I >= SMALLEST_INPUT
        and N * I * O >= SMALLEST_PRODUCT
        and x.dtype == torch.float32
        and x.device.type == "cpu"
        and _runs_on_amd()
        and bool(torch.backends.mkldnn.enabled)  # which a caller may switch off
        and not torch.is_autocast_enabled("cpu")
    )


@functools.cache
def _runs_on_amd() -> bool:
    """Say whether this is an x86 processor of AMD, and torch has MKL and oneDNN.

    Without MKL `F.linear` goes elsewhere, and there is no slow product to go around.
    """
    for library in (torch.backends.mkldnn, torch.backends.mkl):
        if not library.is_available():
            return False
    processors = Path("/proc/cpuinfo")
    if processors.exists():
        return "AuthenticAMD" in processors.read_text(errors="replace")
    return "AuthenticAMD" in platform.processor()
