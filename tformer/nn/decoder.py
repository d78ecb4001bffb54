"""The decoder: causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · F d_ff · H heads
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.nn.cache import DecoderLayerCache, KeyValueCache
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm
from tformer.nn.residual import Residual


class DecoderLayer(nn.Module):
    """Attend to the target so far, then to the source, then transform each position.

    Vaswani et al. 2017, section 3.1 and figure 1, right. As in `nn.TransformerDecoder`,
    the future is hidden only if you say so (`is_causal=True`); `Transformer` does.

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
    ) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = (
            MultiHeadAttention(
                d_model,
                num_heads,
                num_kv_heads=num_kv_heads,
                bias=bias,
                dropout=dropout,
            )
            for _ in range(2)
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout=dropout, bias=bias
        )
        (
            self.self_attn_residual,
            self.cross_attn_residual,
            self.feed_forward_residual,
        ) = (
            Residual(
                d_model, dropout=dropout, norm_first=norm_first, eps=eps, bias=bias
            )
            for _ in range(3)
        )

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        is_causal: bool = False,
        cache: DecoderLayerCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """Decode x against the encoder's output.

        Args:
            x: (B, T, D).
            memory: (B, S, D), the encoder's output.
            attn_mask: bool, broadcastable to (B, H, T, T), target to target.
            key_mask: bool (B, T), True = a real token of the target.
            memory_mask: bool, broadcastable to (B, H, T, S), target to source.
            memory_key_mask: bool (B, S), True = a real token of the source.
            is_causal: hide later positions of the target.
            cache: of `new_cache`: what came before x, and the memory's keys and values.
                Masks of the target then speak of all its keys, old and new. The memory
                may have fewer rows than x: beams of one source follow each other.
            return_weights: also return the attention weights.

        Returns:
            (B, T, D), or with `return_weights` a triple of it, the weights of
            self-attention (B, H, T, T) and of cross-attention (B, H, T, S).
        """
        weights: list[Tensor] = []
        of_target = of_memory = None
        if cache is not None:
            of_target, of_memory = cache.target, self._memory_cache(cache, x, memory)

        def keep(attended: Any) -> Tensor:
            if isinstance(attended, Tensor):
                return attended
            weights.append(attended[1])
            return attended[0]

        x = self.self_attn_residual(  # (B, T, D)
            x,
            lambda x: keep(
                self.self_attn(
                    x,
                    attn_mask=attn_mask,
                    key_mask=key_mask,
                    is_causal=is_causal,
                    cache=of_target,
                    return_weights=return_weights,
                )
            ),
        )
        x = self.cross_attn_residual(  # (B, T, D)
            x,
            lambda x: keep(
                self.cross_attn(
                    # Beams of one source are further queries to one memory.
                    x if cache is None else x.reshape(len(memory), -1, x.shape[2]),
                    memory,
                    attn_mask=memory_mask,
                    key_mask=memory_key_mask,
                    cache=of_memory,
                    return_weights=return_weights,
                )
            ).reshape(x.shape),
        )
        x = self.feed_forward_residual(x, self.feed_forward)  # (B, T, D)
        return (x, weights[0], weights[1]) if return_weights else x

    def new_cache(self, batch_size: int, max_len: int) -> DecoderLayerCache:
        """Make an empty cache for so many targets, of so many tokens each."""
        return DecoderLayerCache(self.self_attn.new_cache(batch_size, max_len))

    def _memory_cache(
        self, cache: DecoderLayerCache, x: Tensor, memory: Tensor
    ) -> KeyValueCache:
        if len(x) % len(memory):
            raise ValueError(
                f"x must have as many rows as the memory, or so many for each of its, "
                f"not {len(x)} for {len(memory)}"
            )
        if cache.memory is None:
            cache.memory = self.cross_attn.new_cache(len(memory), memory.shape[1])
        return cache.memory


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

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        memory_key_mask: Tensor | None = None,
        is_causal: bool = False,
        caches: Sequence[DecoderLayerCache] | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Decode x (B, T, D) by every layer in turn; the arguments are the layer's.

        `caches` holds one for each layer.

        Returns:
            (B, T, D), or with `return_weights` a triple of it and, one a layer, the
            weights of self-attention (B, H, T, T) and of cross-attention (B, H, T, S).
        """
        self_weights, cross_weights = [], []
        for i, layer in enumerate(self.layers):
            x = layer(
                x,
                memory,
                attn_mask,
                key_mask=key_mask,
                memory_mask=memory_mask,
                memory_key_mask=memory_key_mask,
                is_causal=is_causal,
                cache=None if caches is None else caches[i],
                return_weights=return_weights,
            )
            if return_weights:
                x, to_target, to_source = x
                self_weights.append(to_target)
                cross_weights.append(to_source)
        if self.norm is not None:
            x = self.norm(x)
        if return_weights:
            return x, tuple(self_weights), tuple(cross_weights)
        return x
