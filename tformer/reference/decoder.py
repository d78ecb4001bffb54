"""The decoder in NumPy: causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · F d_ff · H heads
"""

from typing import Any

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual
from tformer.reference.weights import Weights, numbered, parts


class DecoderLayer:
    """Attend to the target so far, then to the source, then transform each position.

    The twin of `tformer.DecoderLayer`, as it computes in `eval()`. The future is hidden
    only if you say so (`is_causal=True`); `Transformer` does.

    Args:
        weights: those of "self_attn", "cross_attn", "feed_forward" and of each one's
            residual ("self_attn_residual", …), each name followed by the part's own.
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
            "cross_attn",
            "feed_forward",
            "self_attn_residual",
            "cross_attn_residual",
            "feed_forward_residual",
        )
        heads: dict[str, Any] = {"num_heads": num_heads, "num_kv_heads": num_kv_heads}
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps}
        self.self_attn = MultiHeadAttention(of["self_attn"], **heads)
        self.cross_attn = MultiHeadAttention(of["cross_attn"], **heads)
        self.feed_forward = FeedForward(of["feed_forward"], activation=activation)
        self.self_attn_residual = Residual(of["self_attn_residual"], **norm)
        self.cross_attn_residual = Residual(of["cross_attn_residual"], **norm)
        self.feed_forward_residual = Residual(of["feed_forward_residual"], **norm)

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        key_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        memory_key_mask: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Decode x against the encoder's output.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the encoder's output.
            attn_mask: bool, broadcastable to (B, H, T, T), target to target.
            key_mask: bool (B, T), True = a real token of the target.
            memory_mask: bool, broadcastable to (B, H, T, S), target to source.
            memory_key_mask: bool (B, S), True = a real token of the source.
            is_causal: hide later positions of the target.
            return_weights: also return the attention weights.

        Returns:
            (B, T, D), or with `return_weights` a triple of it, the weights of
            self-attention (B, H, T, T) and of cross-attention (B, H, T, S).
        """
        to_target: np.ndarray
        to_source: np.ndarray

        def attend_to_target(x: np.ndarray) -> np.ndarray:
            nonlocal to_target
            output, to_target = self.self_attn(
                x,
                attn_mask=attn_mask,
                key_mask=key_mask,
                is_causal=is_causal,
                return_weights=True,
            )
            return output

        def attend_to_source(x: np.ndarray) -> np.ndarray:
            nonlocal to_source
            output, to_source = self.cross_attn(
                x,
                memory,
                attn_mask=memory_mask,
                key_mask=memory_key_mask,
                return_weights=True,
            )
            return output

        x = self.self_attn_residual(x, attend_to_target)  # (B, T, D)
        x = self.cross_attn_residual(x, attend_to_source)  # (B, T, D)
        x = self.feed_forward_residual(x, self.feed_forward)  # (B, T, D)
        return (x, to_target, to_source) if return_weights else x


class Decoder:
    """A stack of decoder layers, and a norm at its end if the weights have one.

    The twin of `tformer.Decoder`, as it computes in `eval()`.

    Args:
        weights: those of "layers.0", "layers.1", … and, or not, of "norm".
        num_heads: heads H.
        eps: added to the variance in the norms.
        options: further arguments of `DecoderLayer`.

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
            DecoderLayer(of_layer, num_heads, eps=eps, **options)
            for of_layer in numbered(of["layers"])
        ]
        self.norm = LayerNorm(of["norm"], eps) if of["norm"] else None

    def __call__(
        self,
        x: np.ndarray,
        memory: np.ndarray,
        attn_mask: np.ndarray | None = None,
        *,
        key_mask: np.ndarray | None = None,
        memory_mask: np.ndarray | None = None,
        memory_key_mask: np.ndarray | None = None,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Any:
        """Decode x (B, T, D) by every layer in turn; the arguments are the layer's.

        Returns:
            (B, T, D), or with `return_weights` a triple of it and, one a layer, the
            weights of self-attention (B, H, T, T) and of cross-attention (B, H, T, S).
        """
        self_weights, cross_weights = [], []
        for layer in self.layers:
            x, to_target, to_source = layer(
                x,
                memory,
                attn_mask,
                key_mask=key_mask,
                memory_mask=memory_mask,
                memory_key_mask=memory_key_mask,
                is_causal=is_causal,
                return_weights=True,
            )
            if return_weights:
                self_weights.append(to_target)
                cross_weights.append(to_source)
        if self.norm is not None:
            x = self.norm(x)
        if return_weights:
            return x, tuple(self_weights), tuple(cross_weights)
        return x
