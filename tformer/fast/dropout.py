"""Dropout that costs nothing where nothing is dropped."""

from torch import Tensor, nn


class Dropout(nn.Dropout):
    """`nn.Dropout`, which in `eval()` returns its input without asking torch.

    Torch's takes about 2 µs to return the same: while a model writes at batch 1, that
    is three times in each layer for each token.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop numbers of any shape in training, and scale the others."""
        return super().forward(input) if self.training else input
