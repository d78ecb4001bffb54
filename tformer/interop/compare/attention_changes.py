"""Changes of an attention that make of it what others compute, to be tried.

B batch · H heads · G key/value heads · T length · D d_model · Dh head_dim
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MethodType

import torch
from torch import Tensor

from tformer.interop.compare.rotary_changes import (
    Change,
    Hints,
    around,
    linear,
    put,
    reorder,
    rotations,
    set_on_attention,
    with_options,
)
from tformer.nn.block import Block
from tformer.nn.heads import MultiHeadAttention, merge_heads, split_heads
from tformer.nn.qk_norm import LateNormAttention

Attend = Callable[..., Tensor]
QKV = ("q_proj", "k_proj", "v_proj")


def attention_changes(block: Block, i: int, T: int, hints: Hints) -> Iterator[Change]:
    """Yield what may differ in the attention of block i, for T tokens."""
    if not isinstance(block.attention, MultiHeadAttention):
        return
    a = block.attention
    yield from rotations(a, hints)
    yield from scores(a, i, T, hints)
    yield from projections(a)


def scores(a: MultiHeadAttention, i: int, T: int, hints: Hints) -> Iterator[Change]:
    """Yield other scales, masks and bounds of the scores."""
    H, G, Dh = a.num_heads, a.num_kv_heads, a.head_dim
    scales = {
        "not divided by √head_dim": 1.0,
        "divided by √head_dim": Dh**-0.5,
        "divided by head_dim": 1 / Dh,
        "divided by √d_model": a.d_model**-0.5,
        "multiplied by √head_dim": Dh**0.5,
        f"divided by √head_dim and by the layer's number ({i + 1})": Dh**-0.5 / (i + 1),
    }
    now = Dh**-0.5 if a.scale is None else a.scale
    for told, scale in scales.items():
        if not math.isclose(scale, now):
            yield f"the scores are {told}", set_on_attention(scale=scale)
    yield "there is no causal mask", with_options(is_causal=False)
    for step, told in ((1, "one token ahead"), (-1, "only what is before itself")):
        seen = torch.ones(T, T, dtype=torch.bool).tril(step)
        now_seen = {"attn_mask": seen, "is_causal": False}
        yield f"a query sees {told}", with_options(**now_seen)
    if a.window is not None:
        yield "no window bounds the past", set_on_attention(window=None)
    near = range(1, T) if T <= 64 else ()
    for window in sorted({*near, *(x for x in hints.counts if 0 < x < T)}):
        if window != a.window:
            told = f"a query sees a window of {window} tokens"
            yield told, set_on_attention(window=window)
    if a.softcap is not None:
        yield "the scores are not softcapped", set_on_attention(softcap=None)
    for cap in dict.fromkeys((20.0, 30.0, 50.0, *(x for x in hints.floats if x > 1))):
        if cap != a.softcap:
            told = f"the scores are softcapped at {cap:g}"
            yield told, set_on_attention(softcap=cap)
    for name, told in (("sinks", "sinks"), ("gate", "gate"), ("relative", "bias")):
        if getattr(a, name) is not None:
            yield f"attention has no {told}", set_on_attention(**{name: None})
    if G < H:
        told = f"query head h reads key head h mod {G} in place of h // {H // G}"
        yield told, around(partial(tiled, times=H // G))
    told = "heads are merged without moving them behind the positions"
    yield told, around(merged_at_once)


def tiled(
    attend: Attend,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *masks: Tensor,
    times: int,
    **options: object,
) -> Tensor:
    """Attend with the keys and values of all heads, once after the other."""
    k, v = (x.repeat(1, times, 1, 1) for x in (k, v))
    return attend(q, k, v, *masks, **options)


def merged_at_once(attend: Attend, *given: Tensor, **options: object) -> Tensor:
    """Attend, and give what merges to (B, H, T, Dh) seen as (B, T, H · Dh)."""
    heads = attend(*given, **options).contiguous()
    B, H, T, Dh = heads.shape
    return split_heads(heads.view(B, T, H * Dh), H)


def projections(a: MultiHeadAttention) -> Iterator[Change]:
    """Yield other readings of the weights of q, k, v and the output."""
    H, G, Dh = a.num_heads, a.num_kv_heads, a.head_dim
    square = [n for n in (*QKV, "out_proj") if is_square(getattr(a, n).weight)]
    groups = [square, [n for n in square if n != "out_proj"], *([n] for n in square)]
    for names in groups:
        if names:
            yield f"{listed(names)} transposed", transpose(names)
    biased = [n for n in (*QKV, "out_proj") if getattr(a, n).bias is not None]
    groups = [biased, [n for n in biased if n != "out_proj"], *([n] for n in biased)]
    for names in groups:
        if names:
            yield f"{listed(names)} without bias", no_bias(names)
    if G == H:
        for order in ("kqv", "vkq", "qvk", "kvq", "vqk"):
            told = f"q, k, v are read in the order {', '.join(order)}"
            yield told, exchanged(order)
        blocks = torch.arange(3 * H * Dh).view(3, H, Dh)
        told = "the fused weight of q, k, v is read head by head, not as three blocks"
        yield told, partial(fused, order=blocks.view(H, 3, Dh).transpose(0, 1))
        told = "the fused weight of q, k, v is read as three blocks, not head by head"
        yield told, partial(fused, order=blocks.transpose(0, 1))
    heads = dict(zip(QKV, (H, G, G), strict=True))
    rows = {n: torch.arange(h * Dh).view(Dh, h).t() for n, h in heads.items()}
    yield "heads are cut with their width first, (Dh, H)", partial(reorder, rows=rows)

    def cut_at_once(block: Block) -> None:
        for name, h in heads.items():
            layer = linear(block, name)
            layer.register_forward_hook(
                lambda _, __, y, h=h: merge_heads(y.view(len(y), h, -1, Dh))
            )

    yield "heads are cut without moving them before the positions", cut_at_once
    if a.q_norm is not None or a.k_norm is not None:
        none = {"q_norm": None, "k_norm": None}
        yield "q and k are not normalised", set_on_attention(**none)
        late = isinstance(a, LateNormAttention)
        place = MultiHeadAttention.place if late else LateNormAttention.place

        def in_the_other_order(block: Block) -> None:
            set_on_attention(place=MethodType(place, block.attention))(block)

        told = f"q and k are normalised {'before' if late else 'after'} the rotation"
        yield told, in_the_other_order


def is_square(x: Tensor) -> bool:
    """Whether a weight can be transposed and still fit."""
    return x.ndim == 2 and x.shape[0] == x.shape[1]


def listed(names: Sequence[str]) -> str:
    """Name several weights and the verb after them."""
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def transpose(names: Sequence[str]) -> Callable[[Block], None]:
    """Transpose the weights of some projections."""

    def change(block: Block) -> None:
        for name in names:
            layer = linear(block, name)
            put(layer, "weight", layer.weight.t().contiguous())

    return change


def no_bias(names: Sequence[str]) -> Callable[[Block], None]:
    """Leave out the bias of some projections."""

    def change(block: Block) -> None:
        for name in names:
            vars(linear(block, name))["_parameters"]["bias"] = None

    return change


def exchanged(order: str) -> Callable[[Block], None]:
    """Exchange the projections of query, key and value."""

    def change(block: Block) -> None:
        layers = [linear(block, f"{letter}_proj") for letter in order]
        for name, layer in zip(QKV, layers, strict=True):
            setattr(block.attention, name, layer)

    return change


def fused(block: Block, order: Tensor) -> None:
    """Put q, k, v below each other and read the rows in another order."""
    layers = [linear(block, name) for name in QKV]
    for kind in ("weight", "bias"):
        parts = [getattr(layer, kind) for layer in layers]
        if parts[0] is not None:
            whole = torch.cat([x.data for x in parts])[order.flatten()]
            for layer, part in zip(layers, whole.chunk(3), strict=True):
                put(layer, kind, part)
