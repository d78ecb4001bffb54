"""The decoder: blocks of causal self-attention, attention to the source, feed-forward.

B batch · T target length · S source length · D d_model · H heads
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.nn.block import Block
from tformer.nn.cache import ModelCache
from tformer.nn.encoder import last_norm, transformer_block


class Decoder(nn.Module):
    """A stack of blocks, each of which attends to the same encoder output.

    Vaswani et al. 2017, section 3.1 and figure 1, right. As in `nn.TransformerDecoder`,
    the future is hidden only if you say so (`is_causal=True`); whole models do.
    """

    def __init__(self, blocks: Iterable[Block], norm: nn.Module | None = None) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        if not self.blocks:
            raise ValueError("blocks (none) must be at least 1")

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attn_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        cache: ModelCache | None = None,
    ) -> Tensor:
        """Decode x (B, T, D) by every block in turn; the arguments are the block's."""
        for i, block in enumerate(self.blocks):
            own = None if cache is None else cache.blocks[i]
            x = block(x, memory, attn_mask, memory_mask, is_causal=is_causal, cache=own)
        return x if self.norm is None else self.norm(x)

    def new_cache(self, max_len: int) -> ModelCache:
        """Make an empty cache for targets of so many tokens."""
        blocks: Iterable[Any] = self.blocks
        return ModelCache(block.new_cache(max_len) for block in blocks)


def transformer_decoder(
    d_model: int,
    num_heads: int,
    d_ff: int,
    num_layers: int,
    *,
    final_norm: bool | None = None,
    cross_attention: bool = True,
    **options: object,
) -> Decoder:
    """Build the paper's decoder; the arguments are those of `transformer_encoder`."""
    check_positive(num_layers=num_layers)
    block: Callable[..., Block] = transformer_block
    options["cross_attention"] = cross_attention
    sizes = d_model, num_heads, d_ff
    blocks = [block(*sizes, **options) for _ in range(num_layers)]
    return Decoder(blocks, last_norm(blocks[0], final_norm))
