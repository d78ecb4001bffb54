"""The position-wise feed-forward network: two linear layers, an activation between.

B batch · T length · D d_model · F d_ff
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_positive, check_probability
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear, relu_in_place

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),  # GPT-2's
    "relu2": lambda x: functional.relu(x).square(),  # So et al. 2021, arXiv:2109.08668
}


class FeedForward(nn.Module):
    """Transform each position by itself: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    Vaswani et al. 2017, section 3.3, equation 2. The dropout inside is torch's and
    tensor2tensor's; the paper does not mention it.

    Args:
        d_model: width D of input and output.
        d_ff: inner width F.
        activation: "relu", as in the paper, "gelu", "gelu_tanh" or "relu2".
        dropout: probability in [0, 1) of dropping an inner number.
        bias: give both layers a bias.

    Raises:
        ValueError: a width is below 1, `activation` is unknown, or `dropout` is outside
            [0, 1).
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
            raise ValueError(
                f"activation ({activation!r}) must be one of {', '.join(ACTIVATIONS)}"
            )
        self.activation = activation
        self.linear1 = Linear(d_model, d_ff, bias=bias)
        self.linear2 = Linear(d_ff, d_model, bias=bias)
        self.dropout = Dropout(dropout)

    @relu_in_place
    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position alike."""
        hidden = ACTIVATIONS[self.activation](self.linear1(x))  # (B, T, F)
        return self.linear2(self.dropout(hidden))  # (B, T, D)
