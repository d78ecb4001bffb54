"""The decoder in NumPy: causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · F d_ff · H heads
"""

from functools import partial
from typing import Any

import numpy as np

from tformer.reference.feed_forward import FeedForward
from tformer.reference.heads import MultiHeadAttention
from tformer.reference.norm import LayerNorm
from tformer.reference.residual import Residual
from tformer.reference.weights import Weights, numbered, parts


class DecoderLayer:
    """Attend to the target so far, then to the source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, right. The twin of
    `tformer.DecoderLayer`, as it computes in `eval()`. The future is hidden only if you
    say so (`is_causal=True`); `Transformer` does.

    Args:
        weights: those of "self_attn", "cross_attn", "feed_forward" and of each one's
            residual ("self_attn_residual", …), each name followed by the part's own.
            Without "cross_attn" there is no source: such are the layers of a GPT.
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
        sublayers = ["self_attn", "feed_forward"]
        if any(name.startswith("cross_attn.") for name in weights):
            sublayers.append("cross_attn")
        of = parts(weights, *sublayers, *(f"{name}_residual" for name in sublayers))
        heads: dict[str, Any] = {"num_heads": num_heads, "num_kv_heads": num_kv_heads}
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps}
        self.self_attn = MultiHeadAttention(of["self_attn"], **heads)
        self.self_attn_residual = Residual(of["self_attn_residual"], **norm)
        self.cross_attn: MultiHeadAttention | None = None
        if "cross_attn" in of:
            self.cross_attn = MultiHeadAttention(of["cross_attn"], **heads)
            self.cross_attn_residual = Residual(of["cross_attn_residual"], **norm)
        self.feed_forward = FeedForward(of["feed_forward"], activation=activation)
        self.feed_forward_residual = Residual(of["feed_forward_residual"], **norm)

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
        if self.cross_attn is not None:
            to_source = partial(self.cross_attn, key=memory, attn_mask=memory_mask)
            x = self.cross_attn_residual(x, to_source)  # (B, T, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, T, D)


class Decoder:
    """A stack of decoder layers, and a norm at its end if the weights have one.

    The twin of `tformer.Decoder`, as it computes in `eval()`.

    Args:
        weights: those of "layers.0", "layers.1", … and, or not, of "norm".
        num_heads: heads H.
        eps: added to the variance in the norms.
        options: further arguments of `DecoderLayer`.
    """

    def __init__(
        self, weights: Weights, num_heads: int, *, eps: float = 1e-5, **options: Any
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
