"""Queries that grow with their position, so that attention stays sharp in long texts.

B batch · H heads · T length · Dh head_dim
"""

import torch
from torch import Tensor, nn

from tformer.checks import check_above_0, check_positive


class QueryTemperature(nn.Module):
    """Multiply the query at position p by 1 + β log(1 + ⌊p / L⌋).

    More keys share one softmax in a longer text, which flattens the weights; larger
    scores sharpen them again. As Ministral 3 has it (arXiv:2601.08584): the first L
    tokens stay as they are, and each further stretch of L is a step. Llama 4 counts
    from 1, and does it in its layers without positions.

    Args:
        beta: β; 0.1 in both.
        length: L, the length of the first training.
    """

    def __init__(self, beta: float, length: int) -> None:
        super().__init__()
        check_above_0(beta=beta)
        check_positive(length=length)
        self.beta, self.length = beta, length

    def forward(
        self, x: Tensor, start: int = 0, *, positions: Tensor | None = None
    ) -> Tensor:
        """Scale x (B, H, T, Dh) at positions start, start + 1, …; the same shape.

        Or at `positions`, (T,) or (B, T).
        """
        if positions is None:
            positions = torch.arange(start, start + x.shape[2], device=x.device)
        stretches = positions.div(self.length, rounding_mode="floor")
        wide = torch.promote_types(x.dtype, torch.float32)
        factor = 1 + self.beta * torch.log1p(stretches.to(wide))  # (T,) or (B, T)
        factor = factor if factor.ndim == 1 else factor[:, None]  # for all heads
        return x * factor.to(x.dtype)[..., None]
