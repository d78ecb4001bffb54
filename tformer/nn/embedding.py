"""Token embedding: from ids to vectors, and, with the same matrix, back to logits.

B batch · T length · D d_model · V vocabulary
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.fast.linear import linear


class TokenEmbedding(nn.Module):
    """Look up a vector for each token, times √D; its transpose makes logits.

    Vaswani et al. 2017, section 3.4; Press and Wolf 2017 (arXiv:1608.05859) for the
    shared matrix.

    Args:
        vocab_size: number of tokens V.
        d_model: width D.
        scale: multiply by √D, as the paper does; GPT and BERT do not.
        weight: share this matrix (V, D), another embedding's, instead of a new one.

    Raises:
        ValueError: a size is below 1, or `weight` has another shape.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        scale: bool = True,
        weight: nn.Parameter | None = None,
    ) -> None:
        super().__init__()
        check_positive(vocab_size=vocab_size, d_model=d_model)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.scale = scale
        if weight is None:
            weight = nn.Parameter(torch.empty(vocab_size, d_model))
            # With standard deviation 1/√D a vector has about 1 once multiplied by √D,
            # like the positions added to it, and the first logits stay small.
            nn.init.normal_(weight, std=d_model**-0.5)
        if weight.shape != (vocab_size, d_model):
            raise ValueError(
                f"weight must be (V, D) = ({vocab_size}, {d_model}), "
                f"not {tuple(weight.shape)}"
            )
        self.weight = weight

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids, integer (B, T), each in [0, V); returns (B, T, D).

        Raises:
            TypeError: the ids are not integers.
            ValueError: an id is outside the vocabulary, or the sequence is empty. The
                range is checked on a CPU: elsewhere the host would wait for the device
                at every step. CUDA's kernel stops with an assertion of its own.
        """
        check_ids(ids, self.vocab_size)
        x = F.embedding(ids, self.weight)  # (B, T, D)
        return x * math.sqrt(self.d_model) if self.scale else x

    def logits(self, x: Tensor) -> Tensor:
        """Score every token for x (B, T, D) by the same matrix; returns (B, T, V)."""
        return linear(x, self.weight)


def check_ids(ids: Tensor, vocab_size: int) -> None:
    """Raise unless these are ids (B, T) of the vocabulary."""
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"ids must be int64 or int32, not {ids.dtype}")
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(
            f"ids must be (batch, length) and not empty, not {tuple(ids.shape)}"
        )
    if ids.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (int(x) for x in ids.aminmax())
        if low < 0 or high >= vocab_size:
            raise ValueError(
                f"ids must be in [0, vocab_size = {vocab_size}), "
                f"but they reach from {low} to {high}"
            )
