"""Token embedding: from ids to vectors, and, with the same matrix, back to logits.

B batch · T length · D d_model · V vocabulary
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_above_0, check_positive


class TokenEmbedding(nn.Module):
    """Look up a vector for each token, times √D; its transpose makes logits.

    Vaswani et al. 2017, section 3.4; Press and Wolf 2017 (arXiv:1608.05859) for the
    shared matrix.

    Args:
        vocab_size: number of tokens V.
        d_model: width D.
        scale: multiply by √D, as the paper does; GPT and BERT do not. Or by a number,
            which is rounded to the dtype before, as Gemma's code does with its √D.
    """

    def __init__(self, vocab_size: int, d_model: int, *, scale: float = True) -> None:
        super().__init__()
        check_positive(vocab_size=vocab_size, d_model=d_model)
        check_above_0(scale=None if isinstance(scale, bool) else scale)
        self.vocab_size, self.d_model, self.scale = vocab_size, d_model, scale
        # With standard deviation 1/√D a vector has about 1 once multiplied by √D, like
        # the positions added to it, and most of the first logits stay small.
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ids, integer (B, T), each in [0, V); returns (B, T, D)."""
        if ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(f"ids must be int64 or int32, not {ids.dtype}")
        if ids.ndim != 2 or 0 in ids.shape:
            shape = tuple(ids.shape)
            raise ValueError(f"ids must be (batch, length) and not empty, not {shape}")
        try:
            x = F.embedding(ids, self.weight)  # (B, T, D)
        except IndexError:  # of the CPU's kernel
            rule = f"must be in [0, vocab_size = {self.vocab_size})"
            reach = f"from {int(ids.min())} to {int(ids.max())}"
            raise ValueError(f"ids {rule}, but they reach {reach}") from None
        if isinstance(self.scale, bool):
            return x * math.sqrt(self.d_model) if self.scale else x
        return x * torch.full((), self.scale, dtype=x.dtype, device=x.device)

    def logits(self, x: Tensor) -> Tensor:
        """Score every token for x (B, T, D) by the same matrix; returns (B, T, V)."""
        return F.linear(x, self.weight)
