"""The encoder: blocks of self-attention and feed-forward.

B batch · S source length · D d_model
"""

from collections.abc import Iterable

from torch import Tensor, nn

from tformer.nn.block import Block
from tformer.nn.packed import pack, unpack


class Encoder(nn.Module):
    """A stack of blocks in which every real token sees every other.

    Vaswani et al. 2017, section 3.1 and figure 1, left. Pre-norm leaves the sum of all
    sub-layers unnormalised, so it ends with a norm; the paper's post-norm needs none.

    Args:
        blocks: at least one.
        norm: of the end.
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
        attn_mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
    ) -> Tensor:
        """Encode x (B, S, D) by every block in turn; returns (B, S, D).

        Args:
            x: (B, S, D).
            attn_mask: bool, (S, S) or broadcastable with four axes to (B, H, S, S),
                True = may attend. What comes out at padding means nothing, and no real
                token depends on it.
            key_mask: bool (B, S), True = a real token, in place of `attn_mask`: padding
                is then left out of the computation, and comes out as zeros.

        Raises:
            ValueError: both masks are given, or there is no real token.
        """
        segments = None
        if key_mask is not None:
            if attn_mask is not None or not key_mask.any():
                raise ValueError("key_mask needs a real token, and no attn_mask beside")
            x, segments = pack(x, key_mask)  # (1, N, D)
        for block in self.blocks:
            x = block(x, attn_mask=attn_mask, segments=segments)
        x = x if self.norm is None else self.norm(x)
        return x if key_mask is None else unpack(x, key_mask)
