"""The decoder in NumPy: causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · H heads
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual


@dataclass(eq=False)
class DecoderLayer:
    """Attend to the target so far, then to the source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, right. The twin of
    `tformer.DecoderLayer` in `eval()`. Without `cross_attn` there is no source: such
    are the layers of a GPT.
    """

    self_attn: MultiHeadAttention
    self_attn_residual: Residual
    feed_forward: FeedForward
    feed_forward_residual: Residual
    cross_attn: MultiHeadAttention | None = None
    cross_attn_residual: Residual | None = None

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Decode x against the encoder's output.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the encoder's output; None without cross-attention.
            attn_mask: bool, (T, T) or four axes, broadcastable to (B, H, T, T).
            memory_mask: bool, (T, S) or four axes, broadcastable to (B, H, T, S).
            is_causal: hide later positions of the target.

        Returns:
            (B, T, D).

        Raises:
            ValueError: there is a memory and no cross-attention, or the other way
                round.
        """
        if (memory is None) != (self.cross_attn is None):
            raise ValueError("memory must be given with cross-attention, and only then")
        to_target = partial(self.self_attn, attn_mask=attn_mask, is_causal=is_causal)
        x = self.self_attn_residual(x, to_target)  # (B, T, D)
        if self.cross_attn is not None and self.cross_attn_residual is not None:
            to_source = partial(self.cross_attn, key=memory, attn_mask=memory_mask)
            x = self.cross_attn_residual(x, to_source)  # (B, T, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, T, D)


@dataclass(eq=False)
class Decoder:
    """A stack of decoder layers, and perhaps a norm at its end."""

    layers: list[DecoderLayer]
    norm: LayerNorm | None = None

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Decode x (B, T, D) by every layer in turn; the arguments are the layer's."""
        for layer in self.layers:
            x = layer(x, memory, attn_mask, memory_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)  # (B, T, D)
