"""The position-wise feed-forward network, plain and gated.

B batch · T length · D d_model · F d_ff
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_one_of, check_positive, check_probability, check_width

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),  # GPT-2's
    "relu2": lambda x: functional.relu(x).square(),  # So et al. 2021, arXiv:2109.08668
    "silu": functional.silu,  # x · sigmoid(x), also called Swish: Marian's
}
GATES: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": torch.sigmoid,
    "reglu": functional.relu,
    "geglu": functional.gelu,
    "geglu_tanh": partial(functional.gelu, approximate="tanh"),  # Gemma's
    "swiglu": functional.silu,  # x · sigmoid(x), also called Swish
}


class FeedForward(nn.Module):
    """Transform each position by itself: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    Vaswani et al. 2017, section 3.3, equation 2. The dropout inside is torch's and
    tensor2tensor's; the paper does not mention it.

    Args:
        d_model: width D of input and output.
        d_ff: inner width F.
        activation: "relu", as in the paper, "gelu", "gelu_tanh", "relu2" or "silu".
        dropout: probability in [0, 1) of dropping an inner number.
        bias: give both layers a bias.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, d_ff=d_ff)
        check_probability(dropout=dropout)
        if activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"activation ({activation!r}) must be one of {known}")
        self.d_model = d_model
        self.activation = activation
        self.linear1 = nn.Linear(d_model, d_ff, bias=bias)
        self.linear2 = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout) if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        check_width(self.d_model, x)
        hidden = ACTIVATIONS[self.activation](self.linear1(x))  # (B, T, F)
        hidden = hidden if self.dropout is None else self.dropout(hidden)
        return self.linear2(hidden)  # (B, T, D)


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
        check_one_of("gate", gate, GATES)
        self.d_model = d_model
        self.gate = gate
        self.gate_proj = nn.Linear(d_model, d_ff, bias=bias)  # W₁
        self.up_proj = nn.Linear(d_model, d_ff, bias=bias)  # W₃
        self.down_proj = nn.Linear(d_ff, d_model, bias=bias)  # W₂
        self.dropout = nn.Dropout(dropout) if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        check_width(self.d_model, x)
        hidden = GATES[self.gate](self.gate_proj(x)) * self.up_proj(x)  # (B, T, F)
        hidden = hidden if self.dropout is None else self.dropout(hidden)
        return self.down_proj(hidden)  # (B, T, D)
