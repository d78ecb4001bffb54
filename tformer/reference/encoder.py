"""The encoder in NumPy: layers of self-attention and feed-forward.

B batch · S source length · D d_model · F d_ff · H heads
"""

from functools import partial
from typing import Any

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual
from tformer.reference.weights import Weights, numbered, parts


class EncoderLayer:
    """Attend to the whole source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, left. The twin of
    `tformer.EncoderLayer`, as it computes in `eval()`.

    Args:
        weights: those of "self_attn", "feed_forward", "self_attn_residual" and
            "feed_forward_residual", each name followed by the part's own.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads; divides H. H if not given.
        activation: "relu", "gelu", "gelu_tanh" or "relu2".
        norm_first: pre-norm instead of the paper's post-norm.
        eps: added to the variance in the norms.
    """

    def __init__(
        self,
        weights: Weights,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        activation: str = "relu",
        norm_first: bool = False,
        eps: float = 1e-5,
    ) -> None:
        sublayers = ("self_attn", "feed_forward")
        of = parts(weights, *sublayers, *(f"{name}_residual" for name in sublayers))
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps}
        self.self_attn = MultiHeadAttention(
            of["self_attn"], num_heads, num_kv_heads=num_kv_heads
        )
        self.feed_forward = FeedForward(of["feed_forward"], activation=activation)
        self.self_attn_residual = Residual(of["self_attn_residual"], **norm)
        self.feed_forward_residual = Residual(of["feed_forward_residual"], **norm)

    def __call__(
        self, x: np.ndarray, attn_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode x.

        Args:
            x: (B, S, D).
            attn_mask: bool, True = may attend: (S, S), or with four axes and
                broadcastable to (B, H, S, S), as from `length_mask`.

        Returns:
            (B, S, D).
        """
        attend = partial(self.self_attn, attn_mask=attn_mask)
        x = self.self_attn_residual(x, attend)  # (B, S, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, S, D)


class Encoder:
    """A stack of encoder layers, and a norm at its end if the weights have one.

    The twin of `tformer.Encoder`, as it computes in `eval()`.

    Args:
        weights: those of "layers.0", "layers.1", … and, or not, of "norm".
        num_heads: heads H.
        eps: added to the variance in the norms.
        options: further arguments of `EncoderLayer`.
    """

    def __init__(
        self, weights: Weights, num_heads: int, *, eps: float = 1e-5, **options: Any
    ) -> None:
        of = parts(weights, "layers", optional=("norm",))
        self.layers = [
            EncoderLayer(of_layer, num_heads, eps=eps, **options)
            for of_layer in numbered(of["layers"])
        ]
        self.norm = LayerNorm(of["norm"], eps) if of["norm"] else None

    def __call__(
        self, x: np.ndarray, attn_mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Encode x (B, S, D) by every layer in turn; the arguments are the layer's."""
        for layer in self.layers:
            x = layer(x, attn_mask)  # (B, S, D)
        return x if self.norm is None else self.norm(x)  # (B, S, D)
