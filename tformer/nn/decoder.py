"""The decoder: causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · F d_ff · H heads
"""

from functools import partial
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.fast.one_token import skip_calls
from tformer.nn.cache import KeyValueCache
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.model_cache import DecoderCache, DecoderLayerCache
from tformer.nn.norm import LayerNorm
from tformer.nn.residual import Residual


class DecoderLayer(nn.Module):
    """Attend to the target so far, then to the source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, right. As in `nn.TransformerDecoder`,
    the future is hidden only if you say so (`is_causal=True`); whole models do.

    Args:
        d_model: width D.
        num_heads: heads H; divides D.
        d_ff: inner width F of the feed-forward network.
        cross_attention: attend to a source; False for a decoder alone, as in GPT.
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
        cross_attention: bool = True,
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
        heads: dict[str, Any] = {"num_kv_heads": num_kv_heads, "dropout": dropout}
        attention = partial(MultiHeadAttention, d_model, num_heads, bias=bias, **heads)
        norm: dict[str, Any] = {"norm_first": norm_first, "eps": eps, "bias": bias}
        residual = partial(Residual, d_model, dropout=dropout, **norm)
        self.self_attn = attention()
        self.cross_attn = attention() if cross_attention else None
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=ff_dropout, bias=bias
        )
        self.self_attn_residual = residual()
        if cross_attention:
            self.cross_attn_residual = residual()
        self.feed_forward_residual = residual()

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: DecoderLayerCache | None = None,
    ) -> Tensor:
        """Decode x, against the encoder's output if there is one.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the encoder's output. It may have fewer rows than x:
                beams of one source follow each other.
            attn_mask: bool, (T, T) or broadcastable with four axes to (B, H, T, T),
                True = may attend, target to target.
            memory_mask: bool, of such a shape to (B, H, T, S), target to source.
            is_causal: hide later positions of the target.
            cache: what came before x, and the memory's keys and values. The target's
                mask then covers all its keys, old and new.

        Returns:
            (B, T, D).

        Raises:
            ValueError: there is a memory and no cross-attention, or the other way
                round; the rows of x are not a multiple of the memory's.
        """
        if (memory is None) != (self.cross_attn is None):
            raise ValueError("memory must be given with cross-attention, and only then")
        target_cache = None if cache is None else cache.target
        memory_cache = None if cache is None else cache.memory
        to_target = partial(
            self.self_attn, attn_mask=attn_mask, is_causal=is_causal, cache=target_cache
        )
        x = self.self_attn_residual(x, to_target)  # (B, T, D)
        if self.cross_attn is not None and memory is not None:
            to_memory = partial(
                _attend_to_memory, self.cross_attn, memory, memory_mask, memory_cache
            )
            x = self.cross_attn_residual(x, to_memory)  # (B, T, D)
        return self.feed_forward_residual(x, self.feed_forward)  # (B, T, D)


def _attend_to_memory(
    attention: MultiHeadAttention,
    memory: Tensor,
    memory_mask: Tensor | None,
    cache: KeyValueCache | None,
    x: Tensor,
) -> Tensor:
    """Attend from x to the memory: beams of one source are further queries to it."""
    B, rows = memory.shape[0], x.shape[0]
    if not B or rows % B:
        raise ValueError(f"x has {rows} rows, which is not a multiple of memory's {B}")
    beams = x.reshape(B, -1, x.shape[2])
    attended = attention(beams, memory, attn_mask=memory_mask, cache=cache)
    return attended.reshape(x.shape)


class Decoder(nn.Module):
    """A stack of decoder layers, each of which attends to the same encoder output.

    Args:
        d_model: width D.
        num_heads: heads H.
        d_ff: inner width F.
        num_layers: number of layers N.
        norm_first: pre-norm.
        final_norm: end with a norm; as `norm_first` if not given.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
        options: further arguments of `DecoderLayer`.

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
            DecoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)
        )
        final_norm = norm_first if final_norm is None else final_norm
        self.norm = LayerNorm(d_model, eps, bias=bias) if final_norm else None

    @skip_calls
    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: DecoderCache | None = None,
    ) -> Tensor:
        """Decode x (B, T, D) by every layer in turn; the arguments are the layer's."""
        for i, layer in enumerate(self.layers):
            of_layer = None if cache is None else cache.layers[i]
            x = layer(
                x, memory, attn_mask, memory_mask, is_causal=is_causal, cache=of_layer
            )  # (B, T, D)
        return x if self.norm is None else self.norm(x)
