"""A block in NumPy, attention and a feed-forward network, and stacks of blocks.

B batch · T length · S length of the memory · D d_model
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Part = Callable[..., np.ndarray]


def unchanged(x: np.ndarray) -> np.ndarray:
    """Return x: the norm of a place that has none."""
    return x


@dataclass(eq=False)
class Block:
    """Encoder layer, decoder layer and block of a language model: they are one.

    "pre" computes x + f(norm(x)), "post", as in the paper, norm(x + f(x)), "sandwich"
    x + norm₂(f(norm(x))), "output" x + norm(f(x)); f is attention, then attention to
    the memory, if there is one, then the feed-forward network. "parallel" adds both to
    the same x. What is added is multiplied by `residual_scale`.
    """

    attention: Part  # (B, T, D) to (B, T, D)
    feed_forward: Part  # (B, T, D) to (B, T, D)
    attention_norm: Part
    feed_forward_norm: Part
    cross_attention: Part | None = None  # of x and the memory (B, S, D)
    cross_attention_norm: Part = unchanged
    attention_norm2: Part = unchanged  # of a sandwich
    feed_forward_norm2: Part = unchanged  # of a sandwich
    placement: str = "pre"
    residual_scale: float = 1.0  # m

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
        **options: object,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), with a memory (B, S, D) for cross-attention.

        The masks are as in `MultiHeadAttention`, of x to itself and to the memory;
        `options` are further ones of the attention.
        """
        if (memory is None) != (self.cross_attention is None):
            raise ValueError("memory must be given with cross-attention, and only then")

        def attend(x: np.ndarray) -> np.ndarray:
            masks = {"attn_mask": attn_mask, "is_causal": is_causal}
            return self.attention(x, **masks, **options)

        if self.placement == "parallel":
            y = attend(self.attention_norm(x))
            y = y + self.feed_forward(self.feed_forward_norm(x))
            return x + self.residual_scale * y
        x = self.add(x, attend, self.attention_norm, self.attention_norm2)
        if self.cross_attention is not None:
            read = self.cross_attention
            x = self.add(
                x,
                lambda x: read(x, memory, attn_mask=memory_mask),
                self.cross_attention_norm,
            )
        return self.add(
            x, self.feed_forward, self.feed_forward_norm, self.feed_forward_norm2
        )

    def add(
        self, x: np.ndarray, f: Part, norm: Part, norm2: Part = unchanged
    ) -> np.ndarray:
        """Add f to x (B, T, D), with the norm where `placement` says."""
        m = self.residual_scale
        if self.placement in ("pre", "sandwich"):
            return x + m * norm2(f(norm(x)))
        if self.placement == "post":
            return norm(x + m * f(x))
        if self.placement == "output":
            return x + m * norm(f(x))
        raise ValueError(f"placement ({self.placement!r}) is unknown")


@dataclass(eq=False)
class Encoder:
    """A stack of blocks in which every token sees every other."""

    blocks: list[Block]
    norm: Part | None = None  # of the end

    def __call__(
        self, x: np.ndarray, attn_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode x (B, S, D) by every block in turn; returns (B, S, D)."""
        for block in self.blocks:
            x = block(x, attn_mask=attn_mask)  # (B, S, D)
        return x if self.norm is None else self.norm(x)


@dataclass(eq=False)
class Decoder:
    """A stack of blocks, each of which attends to the same encoder output."""

    blocks: list[Block]
    norm: Part | None = None  # of the end

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray | None = None,
        attn_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        *,
        is_causal: bool = False,
    ) -> np.ndarray:
        """Decode x (B, T, D) by every block in turn; the arguments are the block's."""
        for block in self.blocks:
            x = block(x, memory, attn_mask, memory_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)
