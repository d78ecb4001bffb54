"""The encoder: layers of self-attention and feed-forward, each in its residual.

B batch · S source length · D d_model · F d_ff · H heads
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.nn.cache import KeyValueCache
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm
from tformer.nn.residual import Residual


class EncoderLayer(nn.Module):
    """Attend to the whole source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, left.

    Args:
        d_model: width D.
        num_heads: heads H; divides D.
        d_ff: inner width F of the feed-forward network.
        dropout: probability in [0, 1): of each sub-layer's output (the paper's), of the
            attention weights and inside the feed-forward network (torch's too).
        num_kv_heads: key/value heads; divides H. H if not given.
        activation: "relu", "gelu" or "gelu_tanh".
        norm_first: pre-norm instead of the paper's post-norm.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
        ff_dropout: inside the feed-forward network; `dropout` if not given.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        num_kv_heads: int | None = None,
        activation: str = "relu",
        norm_first: bool = False,
        eps: float = 1e-5,
        bias: bool = True,
        ff_dropout: float | None = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(
            d_model, num_heads, num_kv_heads=num_kv_heads, bias=bias, dropout=dropout
        )
        self.feed_forward = FeedForward(
            d_model,
            d_ff,
            activation=activation,
            dropout=dropout if ff_dropout is None else ff_dropout,
            bias=bias,
        )
        self.self_attn_residual, self.feed_forward_residual = (
            Residual(
                d_model, dropout=dropout, norm_first=norm_first, eps=eps, bias=bias
            )
            for _ in range(2)
        )

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Encode x.

        Args:
            x: (B, S, D).
            attn_mask: bool, broadcastable to (B, H, S, S), True = may attend.
            key_mask: bool (B, S), True = a real token.
            is_causal: hide later positions.
            cache: what came before x; masks then speak of all keys, old and new.
            return_weights: also return the attention weights.

        Returns:
            (B, S, D), or with `return_weights` a pair of it and (B, H, S, S).
        """
        weights: list[Tensor] = []

        def keep(attended: Any) -> Tensor:
            if isinstance(attended, Tensor):
                return attended
            weights.append(attended[1])
            return attended[0]

        x = self.self_attn_residual(  # (B, S, D)
            x,
            lambda x: keep(
                self.self_attn(
                    x,
                    attn_mask=attn_mask,
                    key_mask=key_mask,
                    is_causal=is_causal,
                    cache=cache,
                    return_weights=return_weights,
                )
            ),
        )
        x = self.feed_forward_residual(x, self.feed_forward)  # (B, S, D)
        return (x, weights[0]) if return_weights else x


class Encoder(nn.Module):
    """A stack of encoder layers.

    Pre-norm leaves the sum of all sub-layers unnormalised, so it ends with a norm;
    the paper's post-norm needs none.

    Args:
        d_model: width D.
        num_heads: heads H.
        d_ff: inner width F.
        num_layers: number of layers N.
        norm_first: pre-norm.
        final_norm: end with a norm; as `norm_first` if not given.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
        options: further arguments of `EncoderLayer`.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        *,
        norm_first: bool = False,
        final_norm: bool | None = None,
        eps: float = 1e-5,
        bias: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        check_positive(num_layers=num_layers)
        options.update(norm_first=norm_first, eps=eps, bias=bias)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        final_norm = norm_first if final_norm is None else final_norm
        self.norm = LayerNorm(d_model, eps, bias=bias) if final_norm else None

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        is_causal: bool = False,
        caches: Sequence[KeyValueCache] | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, ...]]:
        """Encode x (B, S, D) by every layer in turn; the arguments are the layer's.

        `caches` holds one for each layer.

        Returns:
            (B, S, D), or with `return_weights` a pair of it and, one a layer,
            (B, H, S, S).
        """
        weights = []
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                attn_mask,
                key_mask=key_mask,
                is_causal=is_causal,
                cache=None if caches is None else caches[i],
                return_weights=return_weights,
            )
            if return_weights:
                x, layer_weights = x
                weights.append(layer_weights)
        if self.norm is not None:
            x = self.norm(x)
        return (x, tuple(weights)) if return_weights else x
