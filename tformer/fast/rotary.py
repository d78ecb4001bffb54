"""Rotary positions in few operations: a pair of numbers is one complex number.

B batch · H heads · T length · Dh head_dim
"""

import torch
from torch import Tensor

DEVICES = ("cpu", "cuda")  # whose kernels multiply complex numbers


def can_rotate(x: Tensor) -> bool:
    """Say whether `fast_rotate` is for x: no compiler would fuse complex numbers."""
    return not torch.compiler.is_compiling() and x.device.type in DEVICES


def fast_rotate(x: Tensor, cosine: Tensor, sine: Tensor, layout: str) -> Tensor:
    """Turn each pair of numbers, as `tformer.nn.rotary.rotate` does.

    "pairs": (a + bi) (cos + i sin), one product. "halves": x cos + (−b, a) sin in three
    operations. Forward and backward of the formula take 13 and more, each of which
    reads and writes all of x: two to four times as long on a CPU.

    Args:
        x: (..., T, Dh).
        cosine: (T, Dh/2), in float32 or wider.
        sine: (T, Dh/2).
        layout: "pairs" or "halves".

    Returns:
        (..., T, Dh), in the dtype of x.
    """
    wide = x.to(torch.promote_types(x.dtype, cosine.dtype))
    if layout == "pairs":
        if wide.storage_offset() % 2 or any(s % 2 for s in wide.stride()[:-1]):
            # torch asks this of numbers that become complex.
            wide = wide.clone(memory_format=torch.contiguous_format)
        pairs = wide.reshape(*x.shape[:-1], -1, 2)  # (..., T, Dh/2, 2)
        turned = torch.view_as_complex(pairs) * torch.complex(cosine, sine)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)
    cosine = torch.cat((cosine, cosine), dim=-1)  # (T, Dh)
    sine = torch.cat((-sine, sine), dim=-1)  # (T, Dh)
    swapped = wide.roll(x.shape[-1] // 2, dims=-1)  # (b, a)
    return torch.addcmul(wide * cosine, swapped, sine).to(x.dtype)
