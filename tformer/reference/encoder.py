"""The encoder in NumPy: self-attention, then a feed-forward network, N times.

B batch · S length · D d_model · H heads
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual


@dataclass(eq=False)
class EncoderLayer:
    """Let each position look at all others, then transform each by itself.

    Vaswani et al. 2017, section 3.1 and figure 1, left. The twin of
    `tformer.EncoderLayer` in `eval()`.
    """

    self_attn: MultiHeadAttention
    self_attn_residual: Residual
    feed_forward: FeedForward
    feed_forward_residual: Residual

    def __call__(
        self, x: np.ndarray, attn_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode x (B, S, D); returns (B, S, D).

        `attn_mask` is bool, True = may attend: (S, S), or four axes that broadcast to
        (B, H, S, S), as from `length_mask`.
        """
        attend = partial(self.self_attn, attn_mask=attn_mask)
        x = self.self_attn_residual(x, attend)  # (B, S, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, S, D)


@dataclass(eq=False)
class Encoder:
    """A stack of encoder layers, and perhaps a norm at its end."""

    layers: list[EncoderLayer]
    norm: LayerNorm | None = None

    def __call__(
        self, x: np.ndarray, attn_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode x (B, S, D) by every layer in turn; the arguments are the layer's."""
        for layer in self.layers:
            x = layer(x, attn_mask)  # (B, S, D)
        return x if self.norm is None else self.norm(x)  # (B, S, D)
