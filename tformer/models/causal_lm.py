"""CausalLM: a language model built from the parts that open models have today.

B batch · T length · D d_model · V vocabulary · H heads · N layers
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.models.causal_config import CausalLMConfig
from tformer.models.initialisation import depth_scaled_normal_
from tformer.nn.block import Block
from tformer.nn.embedding import TokenEmbedding
from tformer.nn.experts import Experts
from tformer.nn.feed_forward import FeedForward
from tformer.nn.gated import GatedFeedForward
from tformer.nn.latent import LatentAttention
from tformer.nn.model_cache import StackCache
from tformer.nn.norm import LayerNorm
from tformer.nn.positions import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
)
from tformer.nn.relative import ALiBi, RelativeBias
from tformer.nn.rms_norm import RMSNorm
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies
from tformer.nn.self_attention import SelfAttention

SINUSOIDS = 4096  # computed beforehand; the table grows when a longer text comes


class CausalLM(nn.Module):
    """Predict each next token of a text from the tokens up to it.

    Embedding, N blocks, a last norm, logits: as `GPT`, but built with the parts that
    its config names. With those of GPT it computes the same numbers.

    Args:
        config: sizes and parts.
    """

    def __init__(self, config: CausalLMConfig) -> None:
        super().__init__()
        c = self.config = config
        self.embedding = TokenEmbedding(
            c.vocab_size, c.d_model, scale=c.parts.scale_embedding
        )
        self.positions = make_positions(c)
        self.dropout = Dropout(c.dropout)
        # One for all layers, or with a base of their own one for those with a window.
        rotary, relative = make_rotary(c), make_relative(c)
        own = c.parts.rotary.local_base is not None
        local = make_rotary(c, local=True) if own else rotary
        windows = [c.parts.window_of(layer) for layer in range(c.num_layers)]
        self.blocks = nn.ModuleList(
            Block(
                make_attention(c, window, local if window else rotary, relative),
                make_feed_forward(c),
                partial(make_norm, c, c.d_model),
                placement=c.parts.placement,
                dropout=c.dropout,
            )
            for window in windows
        )
        # Post-norm ends each block with a norm already.
        self.norm = None if c.parts.placement == "post" else make_norm(c, c.d_model)
        self.output = None
        if not c.tie_embeddings:
            self.output = Linear(c.d_model, c.vocab_size, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new matrices as GPT-2; gains, sinks and the like stay as they are."""
        depth_scaled_normal_(self, self.config.num_layers)

    def forward(
        self,
        ids: Tensor,
        *,
        cache: StackCache | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Score the next token at every position.

        Args:
            ids: (B, T). Position t sees ids[:, : t + 1], or the window of it.
            cache: of `new_cache`. The ids are then only what is new since the last
                call: their positions start at cache.length.
            last_only: score what follows the last position only: (B, 1, V).

        Returns:
            logits (B, T, V).

        Raises:
            TypeError: the ids are not integers.
            ValueError: an id is unknown, the text is empty, or beyond learned
                positions.
        """
        x = self.states(ids, cache=cache)  # (B, T, D)
        return self.logits(x[:, -1:] if last_only else x)

    def states(self, ids: Tensor, *, cache: StackCache | None = None) -> Tensor:
        """Compute that from which `logits` are made: (B, T) to (B, T, D)."""
        x = self.embedding(ids)  # (B, T, D)
        if self.positions is not None:
            x = self.positions(x, start=0 if cache is None else cache.length)
        x = self.dropout(x)
        for i, block in enumerate(self.blocks):
            x = block(x, cache=None if cache is None else cache.layers[i])  # (B, T, D)
        return x if self.norm is None else self.norm(x)

    def logits(self, x: Tensor) -> Tensor:
        """Score every token of the vocabulary: (B, T, D) to (B, T, V)."""
        logits = self.embedding.logits(x) if self.output is None else self.output(x)
        scale, cap = self.config.logit_scale, self.config.parts.logit_cap
        logits = logits if scale == 1 else scale * logits
        return logits if cap is None else cap * torch.tanh(logits / cap)

    def new_cache(self, max_len: int) -> StackCache:
        """Make an empty cache for texts of so many tokens."""
        blocks: Iterable[Any] = self.blocks
        return StackCache([block.new_cache(max_len) for block in blocks])


def make_positions(c: CausalLMConfig) -> nn.Module | None:
    """Make what is added to the embedded tokens, if anything is."""
    if c.parts.positions == "learned":
        return LearnedPositionalEmbedding(c.max_len, c.d_model)
    if c.parts.positions == "sinusoidal":
        return SinusoidalPositionalEncoding(
            c.d_model, max_len=min(c.max_len, SINUSOIDS)
        )
    return None


def make_rotary(c: CausalLMConfig, *, local: bool = False) -> RotaryEmbedding | None:
    """Make what turns queries and keys, if anything does; `local`: with a window."""
    r = c.parts.rotary
    if c.parts.positions != "rotary":
        return None
    if local and r.local_base is not None:
        return RotaryEmbedding(
            rotary_frequencies(c.turned_width, base=r.local_base), layout=r.layout
        )
    scaled, factor = r.scaled(rotary_frequencies(c.turned_width, base=r.base))
    return RotaryEmbedding(scaled, factor=factor, layout=r.layout)


def make_relative(c: CausalLMConfig) -> nn.Module | None:
    """Make what adds to the scores by distance, if anything does."""
    if c.parts.positions == "alibi":
        return ALiBi(c.num_heads)
    return RelativeBias(c.num_heads) if c.parts.positions == "t5" else None


def make_norm(c: CausalLMConfig, width: int) -> nn.Module:
    """Make a norm of this width, of the kind that the config names."""
    if c.parts.norm == "layer":
        return LayerNorm(width, c.eps, bias=c.bias)
    return RMSNorm(width, c.eps, plus_one=c.parts.norm == "rms_plus_one")


def make_attention(
    c: CausalLMConfig,
    window: int | None,
    rotary: RotaryEmbedding | None,
    relative: nn.Module | None,
) -> nn.Module:
    """Make the attention of a layer."""
    latent = c.parts.latent
    if latent is not None and rotary is not None:
        return LatentAttention(
            c.d_model,
            c.num_heads,
            kv_rank=latent.kv_rank,
            head_dim=c.width_of_head,
            rotary=rotary,
            value_dim=latent.value_dim,
            q_rank=latent.q_rank,
            eps=c.eps,
            dropout=c.dropout,
            scale=c.parts.score_scale,
        )
    return SelfAttention(
        c.d_model,
        c.num_heads,
        num_kv_heads=c.num_kv_heads,
        head_dim=c.head_dim,
        bias=c.bias,
        dropout=c.dropout,
        rotary=rotary,
        relative=relative,
        qk_norm=partial(make_norm, c) if c.parts.qk_norm else None,
        window=window,
        sinks=c.parts.sinks,
        softcap=c.parts.softcap,
        scale=c.parts.score_scale,
    )


def make_feed_forward(c: CausalLMConfig) -> nn.Module:
    """Make the feed-forward network of a layer, or its experts."""
    e = c.parts.experts
    if e is None:
        return make_network(c, c.inner_width)
    return Experts(
        c.d_model,
        e.num_experts,
        partial(make_network, c, c.inner_width),
        shared=make_network(c, e.num_shared * c.inner_width) if e.num_shared else None,
        top_k=e.top_k,
        scores=e.scores,
        renormalise=e.renormalise,
        balance_rate=e.balance_rate,
    )


def make_network(c: CausalLMConfig, width: int) -> nn.Module:
    """Make a feed-forward network of this inner width, of the kind of the config."""
    kind = c.parts.feed_forward
    if c.parts.gated:
        return GatedFeedForward(c.d_model, width, gate=kind, bias=c.bias)
    return FeedForward(c.d_model, width, activation=kind, bias=c.bias)
