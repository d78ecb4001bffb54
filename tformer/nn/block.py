"""A block: attention and a feed-forward network, each added to its input.

B batch · T length · S length of the memory · D d_model
"""

from collections.abc import Callable

from torch import Tensor, nn

from tformer.checks import check_above_0, check_probability
from tformer.nn.cache import BlockCache, cache_of
from tformer.nn.heads import MultiHeadAttention

PLACEMENTS = ("post", "pre", "sandwich", "output", "parallel")


class Block(nn.Module):
    """Layer of an encoder, of a decoder, of a language model: they are one.

    Vaswani et al. 2017, section 3.1 and figure 1. For each sub-layer f, "post" computes
    norm(x + f(x)), as the paper; "pre" x + f(norm(x)) (Xiong et al. 2020,
    arXiv:2002.04745); "sandwich" x + norm₂(f(norm(x))) (Ding et al. 2021,
    arXiv:2105.13290, and Gemma 2); "output" x + norm(f(x)) (OLMo 2, arXiv:2501.00656).
    "parallel" x + f(norm(x)) + g(norm₂(x)), of both (GPT-NeoX, arXiv:2204.06745). What
    is added is multiplied by `residual_scale`, m (Granite 3, after arXiv:2203.03466).

    Args:
        attention: maps (B, T, D) to (B, T, D), such as `MultiHeadAttention`.
        feed_forward: maps (B, T, D) to (B, T, D), such as `FeedForward`.
        norm: makes a norm of width D, for each sub-layer; for "sandwich" two.
        cross_attention: attends to a memory, with "post" or "pre"; None without one.
        placement: of the norms.
        dropout: probability in [0, 1): of what is added (the paper's).
        residual_scale: factor m > 0 of what is added.
    """

    def __init__(
        self,
        attention: nn.Module,
        feed_forward: nn.Module,
        norm: Callable[[], nn.Module],
        *,
        cross_attention: MultiHeadAttention | None = None,
        placement: str = "pre",
        dropout: float = 0.0,
        residual_scale: float = 1.0,
    ) -> None:
        super().__init__()
        check_probability(dropout=dropout)
        check_above_0(residual_scale=residual_scale)
        known = PLACEMENTS if cross_attention is None else PLACEMENTS[:2]
        if placement not in known:
            raise ValueError(f"placement ({placement!r}) must be one of {known}")
        self.placement, self.residual_scale = placement, residual_scale
        self.attention, self.attention_norm = attention, norm()
        self.cross_attention = cross_attention
        if cross_attention is not None:
            self.cross_attention_norm = norm()
        self.feed_forward, self.feed_forward_norm = feed_forward, norm()
        if placement == "sandwich":
            self.attention_norm2, self.feed_forward_norm2 = norm(), norm()
        self.dropout = nn.Dropout(dropout) if dropout else None

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: BlockCache | None = None,
        **options: object,
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D).

        Args:
            x: (B, T, D).
            memory: (B, S, D), which cross-attention reads. It may have fewer rows than
                x: beams of one source follow each other.
            attn_mask: bool (T, T) or broadcasting to (B, H, T, T), True = may attend.
                With a cache it covers all keys, old and new.
            memory_mask: bool, of such a shape to (B, H, T, S).
            is_causal: hide later positions.
            cache: what came before x, and the memory's keys and values.
            options: further ones of the attention's forward.
        """
        if (memory is None) != (self.cross_attention is None):
            raise ValueError("memory must be given with cross-attention, and only then")
        branch, attend = self.branch, self.attention
        options["is_causal"] = is_causal
        options["cache"] = None if cache is None else cache.sequence
        options |= {} if attn_mask is None else {"attn_mask": attn_mask}
        if self.placement == "pre":
            x = x + branch(attend(self.attention_norm(x), **options))
            if memory is not None:
                y = self.cross_attention_norm(x)
                x = x + branch(self.read(memory, y, memory_mask, cache))
            return x + branch(self.feed_forward(self.feed_forward_norm(x)))
        if self.placement == "post":
            x = self.attention_norm(x + branch(attend(x, **options)))
            if memory is not None:
                y = self.read(memory, x, memory_mask, cache)
                x = self.cross_attention_norm(x + branch(y))
            return self.feed_forward_norm(x + branch(self.feed_forward(x)))
        if self.placement == "sandwich":
            y = attend(self.attention_norm(x), **options)
            x = x + branch(self.attention_norm2(y))
            y = self.feed_forward(self.feed_forward_norm(x))
            return x + branch(self.feed_forward_norm2(y))
        if self.placement == "parallel":
            y = attend(self.attention_norm(x), **options)
            return x + branch(y) + branch(self.feed_forward(self.feed_forward_norm(x)))
        x = x + branch(self.attention_norm(attend(x, **options)))
        return x + branch(self.feed_forward_norm(self.feed_forward(x)))

    def branch(self, y: Tensor) -> Tensor:
        """Make of a sub-layer's output what is added: m · y, some of it dropped."""
        y = y if self.dropout is None else self.dropout(y)
        return y if self.residual_scale == 1 else self.residual_scale * y

    def new_cache(self, max_len: int) -> BlockCache:
        """Make an empty cache for sequences of so many tokens."""
        return BlockCache(cache_of(self.attention, max_len))

    def read(
        self, memory: Tensor, x: Tensor, mask: Tensor | None, cache: BlockCache | None
    ) -> Tensor:
        """Attend from x to the memory: beams of one source are further queries."""
        rows, sources = x.shape[0], memory.shape[0]  # `len` would fix an exported batch
        if self.cross_attention is None or not sources or rows % sources:
            raise ValueError(f"x has {rows} rows, not a multiple of memory's {sources}")
        if cache is not None and cache.of_memory is None:
            cache.memory = memory
            cache.of_memory = self.cross_attention.project(memory, memory)
        if cache is not None and cache.memory is not memory:
            raise ValueError("the cache holds keys and values of another memory")
        beams = x.reshape(sources, -1, x.shape[2])
        kept = None if cache is None else cache.of_memory
        y = self.cross_attention(beams, memory, None, mask, keys_values=kept)
        return y.reshape(x.shape)
