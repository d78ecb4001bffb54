"""The encoder: layers of self-attention and feed-forward, each in its residual.

B batch · S source length · D d_model · F d_ff · H heads
"""

from functools import partial
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.fast.packing import skip_padding
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
        ff_dropout: inside the feed-forward network; `dropout` if not given.
        num_kv_heads: key/value heads; divides H. H if not given.
        activation: "relu", "gelu", "gelu_tanh" or "relu2".
        norm_first: pre-norm instead of the paper's post-norm.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.

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
        ff_dropout: float | None = None,
        num_kv_heads: int | None = None,
        activation: str = "relu",
        norm_first: bool = False,
        eps: float = 1e-5,
        bias: bool = True,
    ) -> None:
        super().__init__()
        ff_dropout = dropout if ff_dropout is None else ff_dropout
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps, "bias": bias}
        residual = partial(Residual, d_model, dropout=dropout, **norm)
        self.self_attn = MultiHeadAttention(
            d_model, num_heads, num_kv_heads=num_kv_heads, bias=bias, dropout=dropout
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=ff_dropout, bias=bias
        )
        self.self_attn_residual = residual()
        self.feed_forward_residual = residual()

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Encode x.

        Args:
            x: (B, S, D).
            attn_mask: bool, (S, S) or broadcastable with four axes to (B, H, S, S),
                True = may attend.

        Returns:
            (B, S, D).
        """
        attend = partial(self.self_attn, attn_mask=attn_mask)
        x = self.self_attn_residual(x, attend)  # (B, S, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, S, D)


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

    @skip_padding
    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Encode x (B, S, D) by every layer in turn; returns (B, S, D).

        What comes out at padding means nothing, and no real token depends on it. With
        a mask (B, 1, 1, S) of much padding, a CPU computes the real tokens alone.
        """
        for layer in self.layers:
            x = layer(x, attn_mask)
        return x if self.norm is None else self.norm(x)
