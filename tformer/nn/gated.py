"""The gated feed-forward network: one layer says what, another how much of it.

B batch · T length · D d_model · F d_ff
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_positive, check_probability
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear

GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": torch.sigmoid,
    "reglu": functional.relu,
    "geglu": functional.gelu,
    "geglu_tanh": partial(functional.gelu, approximate="tanh"),  # Gemma's
    "swiglu": functional.silu,  # x · sigmoid(x), also called Swish
}


class GatedFeedForward(nn.Module):
    """Transform each position by itself: W₂(act(W₁ x) ⊙ W₃ x).

    Shazeer 2020 (arXiv:2002.05202), equations 5 and 6, there with V for W₃. Three
    matrices in place of two: with F = 8/3 · D there are as many numbers as in a
    `FeedForward` with F = 4 · D.

    Args:
        d_model: width D of input and output.
        d_ff: inner width F.
        gate: act, by the name of the whole: "swiglu" (SiLU), "geglu" (the exact GELU),
            "geglu_tanh" (its approximation), "reglu" (ReLU) or "glu" (sigmoid).
        dropout: probability in [0, 1) of dropping an inner number.
        bias: give the three layers a bias; the paper and most models have none.

    Raises:
        ValueError: a width is below 1, `gate` is unknown, or `dropout` is outside
            [0, 1).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        gate: str = "swiglu",
        dropout: float = 0.0,
        bias: bool = False,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        check_probability(dropout=dropout)
        if gate not in GATES:
            raise ValueError(f"gate ({gate!r}) must be one of {', '.join(GATES)}")
        self.gate = gate
        self.gate_proj = Linear(d_model, d_ff, bias=bias)  # W₁
        self.up_proj = Linear(d_model, d_ff, bias=bias)  # W₃
        self.down_proj = Linear(d_ff, d_model, bias=bias)  # W₂
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = GATES[self.gate](self.gate_proj(x)) * self.up_proj(x)  # (B, T, F)
        return self.down_proj(self.dropout(hidden))  # (B, T, D)
