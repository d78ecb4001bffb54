"""The short convolution: each number is mixed with the few before it, by itself.

B batch · T new tokens · C channels, the width · K kernel, how many tokens are mixed
"""

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_positive, check_sequences


def short_convolution(
    x: Tensor,
    weight: Tensor,
    past: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute y_t = Σᵢ wᵢ ⊙ x_(t − K + 1 + i): causal, and each channel by itself.

    Poli et al. 2023 (arXiv:2302.10866) and Mamba (arXiv:2312.00752), before linear
    attention and the delta rule. The last weight is that of the token itself.

    Args:
        x: (B, T, C).
        weight: (C, K).
        past: the last K − 1 tokens before x, (B, K − 1, C); zeros if not given.
        bias: (C,), added to y, or None.

    Returns:
        y (B, T, C), and what is the past of the next call, (B, K − 1, C).
    """
    C, K = weight.shape
    if past is None:
        past = x.new_zeros(x.shape[0], K - 1, C)
    if past.shape != (x.shape[0], K - 1, C) or x.shape[2] != C:
        raise ValueError(
            f"x {tuple(x.shape)} and past {tuple(past.shape)} do not fit "
            f"weight {tuple(weight.shape)}: they must be (B, T, C), (B, K - 1, C)"
        )
    seen = torch.cat((past, x), dim=1)  # (B, K - 1 + T, C)
    y = functional.conv1d(seen.mT, weight[:, None], bias, groups=C).mT  # (B, T, C)
    return y, seen[:, x.shape[1] :]


class ShortConvolution(nn.Module):
    """Mix each channel with itself in the K − 1 tokens before, then apply SiLU.

    As in Qwen3-Next: one before all queries, keys and values of a delta rule. `past` is
    handed through: a state of K − 1 tokens, whatever the length.

    Args:
        width: channels C.
        kernel: K, how many tokens are mixed, the newest included.
        bias: add a learned number to each channel, as Mamba-2 does.
    """

    def __init__(self, width: int, kernel: int = 4, *, bias: bool = False) -> None:
        super().__init__()
        check_positive(width=width, kernel=kernel)
        self.width, self.kernel = width, kernel
        self.weight = nn.Parameter(torch.empty(width, kernel))
        nn.init.uniform_(self.weight, -(kernel**-0.5), kernel**-0.5)  # as nn.Conv1d
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Map x (B, T, C) to (B, T, C) and the new past, as `short_convolution`."""
        check_sequences(self.width, x=x)
        y, past = short_convolution(x, self.weight, past, self.bias)
        return functional.silu(y), past
