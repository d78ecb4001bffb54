"""The encoder in NumPy: layers of self-attention and feed-forward.

B batch · S source length · D d_model · F d_ff · H heads
"""

from typing import Any

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual
from tformer.reference.weights import Weights, numbered, parts


class EncoderLayer:
    """Attend to the whole source, then transform each position.

    The twin of `tformer.EncoderLayer`, as it computes in `eval()`.

    Args:
        weights: those of "self_attn", "feed_forward", "self_attn_residual" and
            "feed_forward_residual", each name followed by the part's own.
        num_heads: heads H; divides D.
        num_kv_heads: key/value heads; divides H. H if not given.
        activation: "relu", "gelu" or "gelu_tanh".
        norm_first: pre-norm instead of the paper's post-norm.
        eps: added to the variance in the norms.

    Raises:
        ValueError: a name or a shape is wrong, or an argument is out of its range.
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
        of = parts(
            weights,
            "self_attn",
            "feed_forward",
            "self_attn_residual",
            "feed_forward_residual",
        )
        heads: dict[str, Any] = {"num_heads": num_heads, "num_kv_heads": num_kv_heads}
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps}
        self.self_attn = MultiHeadAttention(of["self_attn"], **heads)
        self.feed_forward = FeedForward(of["feed_forward"], activation=activation)
        self.self_attn_residual = Residual(of["self_attn_residual"], **norm)
        self.feed_forward_residual = Residual(of["feed_forward_residual"], **norm)

    def __call__(
        self,
        x: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        key_mask: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Encode x.

        Args:
            x: (B, S, D).
            attn_mask: bool, broadcastable to (B, H, S, S), True = may attend.
            key_mask: bool (B, S), True = a real token.
            is_causal: hide later positions.
            return_weights: also return the attention weights.

        Returns:
            (B, S, D), or with `return_weights` a pair of it and (B, H, S, S).
        """
        weights: np.ndarray

        def attend(x: np.ndarray) -> np.ndarray:
            nonlocal weights
            output, weights = self.self_attn(
                x,
                attn_mask=attn_mask,
                key_mask=key_mask,
                is_causal=is_causal,
                return_weights=True,
            )
            return output

        x = self.self_attn_residual(x, attend)  # (B, S, D)
        x = self.feed_forward_residual(x, self.feed_forward)  # (B, S, D)
        return (x, weights) if return_weights else x


class Encoder:
    """A stack of encoder layers, and a norm at its end if the weights have one.

    The twin of `tformer.Encoder`, as it computes in `eval()`.

    Args:
        weights: those of "layers.0", "layers.1", … and, or not, of "norm".
        num_heads: heads H.
        eps: added to the variance in the norms.
        options: further arguments of `EncoderLayer`.

    Raises:
        ValueError: a name or a shape is wrong, or an argument is out of its range.
    """

    def __init__(
        self,
        weights: Weights,
        num_heads: int,
        *,
        eps: float = 1e-5,
        **options: Any,
    ) -> None:
        of = parts(weights, "layers", optional=("norm",))
        self.layers = [
            EncoderLayer(of_layer, num_heads, eps=eps, **options)
            for of_layer in numbered(of["layers"])
        ]
        self.norm = LayerNorm(of["norm"], eps) if of["norm"] else None

    def __call__(
        self,
        x: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        key_mask: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Encode x (B, S, D) by every layer in turn; the arguments are the layer's.

        Returns:
            (B, S, D), or with `return_weights` a pair of it and, one a layer, the
            weights (B, H, S, S).
        """
        weights = []
        for layer in self.layers:
            x, layer_weights = layer(
                x,
                attn_mask,
                key_mask=key_mask,
                is_causal=is_causal,
                return_weights=True,
            )
            if return_weights:
                weights.append(layer_weights)
        if self.norm is not None:
            x = self.norm(x)
        return (x, tuple(weights)) if return_weights else x
