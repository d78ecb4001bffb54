"""A gated feed-forward network with bounds: an expert of gpt-oss.

B batch · T length · D d_model · F d_ff
"""

import torch
from torch import Tensor

from tformer.checks import check_above_0, check_width
from tformer.nn.feed_forward import GatedFeedForward


def clamped_swiglu(
    gate: Tensor, up: Tensor, *, limit: float = 7.0, alpha: float = 1.702
) -> Tensor:
    """Compute (u + 1) ⊙ g σ(α g), with g = min(gate, c) and u = up within [−c, c].

    gpt-oss (arXiv:2508.10925; its code has the formula). With α = 1.702 g σ(α g) is
    near the GELU. c = `limit` bounds what a token can bring, and with u near 0 the gate
    alone passes. gate and up are (..., F).
    """
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return (up + 1) * gate * torch.sigmoid(alpha * gate)


class ClampedFeedForward(GatedFeedForward):
    """Transform each position by itself: W₂ clamped_swiglu(W₁ x + b₁, W₃ x + b₃) + b₂.

    An expert of gpt-oss. Its files hold W₁ and W₃ as one matrix, row by row in turn.

    Args:
        d_model: width D of input and output.
        d_ff: inner width F.
        limit: c of `clamped_swiglu`, above 0.
        alpha: α of it, above 0.
        bias: give the three layers a bias.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        limit: float = 7.0,
        alpha: float = 1.702,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, d_ff, bias=bias)
        check_above_0(limit=limit, alpha=alpha)
        self.limit, self.alpha = limit, alpha

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        check_width(self.d_model, x)
        gate, up = self.gate_proj(x), self.up_proj(x)  # (B, T, F)
        hidden = clamped_swiglu(gate, up, limit=self.limit, alpha=self.alpha)
        return self.down_proj(hidden)  # (B, T, D)
