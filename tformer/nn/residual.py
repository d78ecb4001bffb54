"""The residual connection around every sub-layer, with post-norm or pre-norm.

B batch · T length · D d_model
"""

from collections.abc import Callable

from torch import Tensor, nn

from tformer.checks import check_probability
from tformer.fast.dropout import Dropout
from tformer.nn.norm import LayerNorm


class Residual(nn.Module):
    """Add a sub-layer's output to its input, and normalise.

    Post-norm, as in the paper (section 3.1 and 5.4): LayerNorm(x + Dropout(f(x))).
    Pre-norm: x + Dropout(f(LayerNorm(x))), first in tensor2tensor's code; see Baevski
    and Auli 2018 (arXiv:1809.10853) and Xiong et al. 2020 (arXiv:2002.04745).

    Args:
        d_model: width D.
        dropout: probability in [0, 1) of dropping a number of the sub-layer's output.
        norm_first: pre-norm instead of post-norm.
        eps: added to the variance in the norm.
        bias: give the norm a bias.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        eps: float = 1e-5,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_probability(dropout=dropout)
        self.norm_first = norm_first
        self.norm = LayerNorm(d_model, eps, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Put `sublayer`, which maps (B, T, D) to (B, T, D), around x (B, T, D)."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
