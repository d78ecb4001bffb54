"""A block of a language model in NumPy: attention and feed-forward, added to the input.

B batch · T length · D d_model
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tformer.reference.weights import Weights

Map = Callable[[np.ndarray], np.ndarray]


class Block:
    """Add attention, then a feed-forward network, to what comes in.

    The twin of `tformer.Block`: "pre" computes x + f(norm(x)), "sandwich"
    x + norm₂(f(norm(x))), "post" norm(x + f(x)).

    Args:
        attention: maps (B, T, D) to (B, T, D).
        feed_forward: maps (B, T, D) to (B, T, D).
        norms: "attention_norm", "feed_forward_norm", and for "sandwich"
            "attention_norm2" and "feed_forward_norm2".
        placement: "pre", "sandwich" or "post".
    """

    def __init__(
        self,
        attention: Map,
        feed_forward: Map,
        norms: Mapping[str, Map],
        *,
        placement: str = "pre",
    ) -> None:
        self.placement = placement
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = norms["attention_norm"]
        self.feed_forward_norm = norms["feed_forward_norm"]
        self.attention_norm2 = norms.get("attention_norm2", _as_it_is)
        self.feed_forward_norm2 = norms.get("feed_forward_norm2", _as_it_is)

    @staticmethod
    def from_torch(module: Any, _: Weights) -> "Block":
        """Make the twin of tformer's module, of the twins of what is in it."""
        from_torch = import_module("tformer.reference.interop").from_torch

        children = dict(module.named_children())
        return Block(
            from_torch(module.attention),
            from_torch(module.feed_forward),
            {n: from_torch(each) for n, each in children.items() if "norm" in n},
            placement=module.placement,
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        if self.placement == "post":
            x = self.attention_norm(x + self.attention(x))
            return self.feed_forward_norm(x + self.feed_forward(x))
        x = x + self.attention_norm2(self.attention(self.attention_norm(x)))
        y = self.feed_forward(self.feed_forward_norm(x))
        return x + self.feed_forward_norm2(y)


def _as_it_is(x: np.ndarray) -> np.ndarray:
    return x
