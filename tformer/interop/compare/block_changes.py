"""Changes of a block's feed-forward network and order, to be tried.

B batch · T length · D d_model · F d_ff
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.interop.compare.attention_changes import is_square, listed
from tformer.interop.compare.norm_changes import Computed, Formula
from tformer.interop.compare.rotary_changes import Change, copied, put
from tformer.nn.block import PLACEMENTS, Block
from tformer.nn.feed_forward import ACTIVATIONS, GATES, FeedForward, GatedFeedForward

ROUNDED = {
    f"the weights are rounded to {name}": getattr(torch, name)
    for name in ("bfloat16", "float16", "float32")
}


def feed_forward_changes(block: Block) -> Iterator[Change]:
    """Yield what may differ in the feed-forward network."""
    old = block.feed_forward
    if not isinstance(old, FeedForward | GatedFeedForward):
        return
    names = ["linear1", "linear2"]
    others: dict[str, Formula] = {"silu": F.silu, "quick_gelu": quick_gelu}
    if isinstance(old, GatedFeedForward):
        names = ["gate_proj", "up_proj", "down_proj"]
        others = {n: f for n, f in GATES.items() if n != old.gate}
        for told, formula in others.items():
            told = f"the gate is {told} in place of {old.gate}"
            yield told, replaced(lambda m, x, f=formula: m.down_proj(
                f(m.gate_proj(x)) * m.up_proj(x)))  # fmt: skip
        now = GATES[old.gate]
        yield "gate_proj and up_proj are exchanged", replaced(
            lambda m, x: m.down_proj(now(m.up_proj(x)) * m.gate_proj(x)))  # fmt: skip
        for told, back in (("row by row", False), ("as two halves", True)):
            told = f"the fused weight of gate and up is read {told}"
            yield told, partial(interleave, back=back)
    else:
        others |= {n: f for n, f in ACTIVATIONS.items() if n != old.activation}
        for told, formula in others.items():
            told = f"the activation is {told} in place of {old.activation}"
            yield told, replaced(lambda m, x, f=formula: m.linear2(f(m.linear1(x))))
    layers = {n: cast(nn.Linear, getattr(old, n)) for n in names}
    biased = [n for n, layer in layers.items() if layer.bias is not None]
    for group in (biased, *([n] for n in biased)):
        if group:

            def without(block: Block, group: Sequence[str] = group) -> None:
                for name in group:
                    getattr(block.feed_forward, name).bias = None

            yield f"{listed(group)} without bias", without
    for name, layer in layers.items():
        if is_square(layer.weight):

            def turn(block: Block, name: str = name) -> None:
                layer = getattr(block.feed_forward, name)
                put(layer, "weight", layer.weight.t().contiguous())

            yield f"{name} is transposed", turn


def quick_gelu(x: Tensor) -> Tensor:
    """Compute x · sigmoid(1.702 x), as CLIP does."""
    return x * torch.sigmoid(1.702 * x)


def replaced(formula: Callable[..., Tensor]) -> Callable[[Block], None]:
    """Compute a formula of the network and x in place of the network."""

    def change(block: Block) -> None:
        old = block.feed_forward
        block.feed_forward = Computed(lambda x: formula(old, x))

    return change


def interleave(block: Block, back: bool) -> None:
    """Read gate and up from one weight, whose rows take turns or are two halves."""
    gate, up = (getattr(block.feed_forward, n) for n in ("gate_proj", "up_proj"))
    for kind in ("weight", "bias"):
        one, two = getattr(gate, kind), getattr(up, kind)
        if one is not None:
            whole = torch.cat((one.data, two.data))
            if back:
                whole = torch.stack((one.data, two.data), 1).flatten(0, 1)
                one, two = whole.chunk(2)
            else:
                one, two = whole[0::2], whole[1::2]
            put(gate, kind, one)
            put(up, kind, two)


def whole_changes(block: Block, blocks: Sequence[Block], i: int) -> Iterator[Change]:
    """Yield what may differ in the order of a block, and in all its weights."""
    for placement in PLACEMENTS:
        if placement != block.placement and placement != "sandwich":
            told = f"the norms stand as {placement!r} in place of {block.placement!r}"
            if placement == "parallel":
                told = "attention and feed-forward both read the block's input"
                told = f"{told} ({placement})"
            yield told, partial(place, placement=placement)
    for name in ("attention", "feed_forward"):

        def alone(block: Block, name: str = name) -> None:
            first = name == "attention"

            def compute(b: Block, x: Tensor, o: dict[str, object]) -> Tensor:
                y = b.attention(b.attention_norm(x), **o)
                x = y if first else x + y
                y = b.feed_forward(b.feed_forward_norm(x))
                return cast(Tensor, x + y if first else y)

            forwarded(block, compute)

        yield f"what goes into {name} is not added to what comes out", alone
    for j, other in enumerate(blocks):
        if j != i:
            told = f"block {j} stands here in place of block {i}"
            yield told, partial(take, other=other)
    yield (
        "the block is left out",
        lambda block: forwarded(block, lambda *given: given[1]),
    )
    for told, dtype in ROUNDED.items():
        yield told, partial(rounded, dtype=dtype)


def place(block: Block, placement: str) -> None:
    """Put the norms elsewhere."""
    block.placement = placement


def forwarded(block: Block, formula: Callable[..., Tensor]) -> None:
    """Compute a formula of the block, x and its options in place of its forward."""
    inner = copied(block)
    block.forward = lambda x, **options: formula(inner, x, options)  # type: ignore[method-assign]
    # What is recorded of the parts is then that of the copy.
    block.attention, block.feed_forward = inner.attention, inner.feed_forward


def take(block: Block, other: Block) -> None:
    """Make a block the copy of another."""
    copy = copied(other)
    for name, part in copy.named_children():
        setattr(block, name, part)
    block.placement = copy.placement


def rounded(module: nn.Module, dtype: torch.dtype) -> None:
    """Round all weights, and keep their dtype."""
    for part in [*module.modules()]:
        for name, x in [*part.named_parameters(recurse=False)]:
            put(part, name, x.to(dtype).to(x.dtype))
