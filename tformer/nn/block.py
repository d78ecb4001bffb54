"""A block of a language model: attention and feed-forward, each added to its input.

B batch · T length · D d_model
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_probability
from tformer.fast.dropout import Dropout

PLACEMENTS = ("pre", "sandwich", "post")


class Block(nn.Module):
    """Add attention, then a feed-forward network, to what comes in.

    For each of the two, f: "pre" computes x + f(norm(x)) (Xiong et al. 2020,
    arXiv:2002.04745); "sandwich" x + norm₂(f(norm(x))) (Ding et al. 2021,
    arXiv:2105.13290, and Gemma 2); "post", as in the paper, norm(x + f(x)).

    Args:
        attention: maps (B, T, D) to (B, T, D), and takes a `cache`; has
            `new_cache(max_len)`. Such as `SelfAttention`.
        feed_forward: maps (B, T, D) to (B, T, D): `FeedForward`, `GatedFeedForward`.
        norm: makes a norm of width D; it is called twice, for "sandwich" four times.
        placement: "pre", "sandwich" or "post".
        dropout: probability in [0, 1): of what is added.

    Raises:
        ValueError: `placement` is unknown, or `dropout` is outside [0, 1).
    """

    def __init__(
        self,
        attention: Any,
        feed_forward: nn.Module,
        norm: Callable[[], nn.Module],
        *,
        placement: str = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_probability(dropout=dropout)
        if placement not in PLACEMENTS:
            raise ValueError(
                f"placement ({placement!r}) must be one of {', '.join(PLACEMENTS)}"
            )
        self.placement = placement
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = norm()
        self.feed_forward_norm = norm()
        if placement == "sandwich":
            self.attention_norm2 = norm()
            self.feed_forward_norm2 = norm()
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, *, cache: Any = None) -> Tensor:
        """Map x (B, T, D) to (B, T, D); `cache` is the attention's."""
        if self.placement == "post":
            y = self.attention(x, cache=cache)
            x = self.attention_norm(x + self.dropout(y))
            y = self.feed_forward(x)
            return self.feed_forward_norm(x + self.dropout(y))  # (B, T, D)

        sandwich = self.placement == "sandwich"
        y = self.attention(self.attention_norm(x), cache=cache)
        x = x + self.dropout(self.attention_norm2(y) if sandwich else y)
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + self.dropout(self.feed_forward_norm2(y) if sandwich else y)

    def new_cache(self, max_len: int) -> Any:
        """Make the attention's cache, empty, for texts of so many tokens."""
        return self.attention.new_cache(max_len)
