"""The encoder: blocks of self-attention and feed-forward.

B batch · S source length · D d_model
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any

from torch import Tensor, nn

from tformer.checks import check_positive
from tformer.nn.block import Block
from tformer.nn.feed_forward import FeedForward
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.norm import LayerNorm
from tformer.nn.packed import attend_to_segments, pack_tokens, unpack_tokens


class Encoder(nn.Module):
    """A stack of blocks in which every real token sees every other.

    Vaswani et al. 2017, section 3.1 and figure 1, left. Pre-norm leaves the sum of all
    sub-layers unnormalised, so it ends with a norm; the paper's post-norm needs none.
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
            attn_mask: as the block has it. What comes out at padding means nothing, and
                no real token depends on it.
            key_mask: bool (B, S), True = a real token, in place of `attn_mask`: padding
                comes out as zeros. On a CPU it is left out of the computation: all
                parts but attention must look at one token at a time, as the sequences
                lie side by side. Elsewhere, or if weights are recorded, it is hidden.
        """
        options: dict[str, object] = {"attn_mask": attn_mask}
        if key_mask is not None:
            on_cpu = x.device.type == "cpu"  # elsewhere the host would wait for a look
            if attn_mask is not None or (on_cpu and not key_mask.any()):
                raise ValueError("key_mask needs a real token, and no attn_mask beside")
            # Recorded weights have a row and a column for each token, padding too. A
            # GPU is done with padding before many small calls have reached it.
            recorded = any(getattr(each, "recorders", ()) for each in self.modules())
            if recorded or not on_cpu:
                y = self.forward(x, key_mask[:, None, None])
                return y.masked_fill(~key_mask[:, :, None], 0.0)
            x, segments = pack_tokens(x, key_mask)  # (1, N, D)
            options["around"] = partial(attend_to_segments, segments=segments)
        for block in self.blocks:
            x = block(x, **options)
        x = x if self.norm is None else self.norm(x)
        return x if key_mask is None else unpack_tokens(x, key_mask)


def transformer_block(
    d_model: int,
    num_heads: int,
    d_ff: int,
    *,
    cross_attention: bool = False,
    dropout: float = 0.0,
    ff_dropout: float | None = None,
    num_kv_heads: int | None = None,
    activation: str = "relu",
    norm_first: bool = False,
    eps: float = 1e-5,
    bias: bool = True,
) -> Block:
    """Build a layer of the paper's encoder, or with cross-attention of its decoder.

    Vaswani et al. 2017, section 3.1, with the choices of `nn.TransformerEncoderLayer`.

    Args:
        d_model: width D.
        num_heads: heads H; divides D.
        d_ff: inner width F of the feed-forward network.
        cross_attention: attend to a memory too.
        dropout: probability in [0, 1): of each sub-layer's output (the paper's), of the
            attention weights and inside the feed-forward network (torch's too).
        ff_dropout: inside the feed-forward network; `dropout` if not given.
        num_kv_heads: key/value heads; divides H. H if not given.
        activation: "relu", "gelu", "gelu_tanh", "relu2" or "silu".
        norm_first: pre-norm instead of the paper's post-norm.
        eps: added to the variance in the norms.
        bias: give linear layers and norms a bias.
    """
    options: dict[str, Any] = {"bias": bias, "dropout": dropout}
    options["num_kv_heads"] = num_kv_heads
    attention = partial(MultiHeadAttention, d_model, num_heads, **options)
    own, of_memory = attention(), attention() if cross_attention else None
    inner: dict[str, Any] = {"activation": activation, "bias": bias}
    inner["dropout"] = dropout if ff_dropout is None else ff_dropout
    return Block(
        own,
        FeedForward(d_model, d_ff, **inner),
        partial(LayerNorm, d_model, eps, bias=bias),
        cross_attention=of_memory,
        placement="pre" if norm_first else "post",
        dropout=dropout,
    )


def transformer_encoder(
    d_model: int,
    num_heads: int,
    d_ff: int,
    num_layers: int,
    *,
    final_norm: bool | None = None,
    **options: object,
) -> Encoder:
    """Build the paper's encoder of N layers; the other arguments are those of a block.

    It ends with a norm if `final_norm` says so, and with `norm_first` if not given.
    """
    check_positive(num_layers=num_layers)
    block: Callable[..., Block] = transformer_block
    sizes = d_model, num_heads, d_ff
    blocks = [block(*sizes, **options) for _ in range(num_layers)]
    return Encoder(blocks, last_norm(blocks[0], final_norm))


def last_norm(block: Block, final_norm: bool | None) -> nn.Module | None:
    """Make the norm after a stack of blocks like this new one, if it has one."""
    wanted = block.placement == "pre" if final_norm is None else final_norm
    return deepcopy(block.feed_forward_norm) if wanted else None
