"""Changes of an attention's rotation of queries and keys, to be tried.

H heads · G key/value heads · T length · Dh head_dim
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from tformer.nn.block import Block
from tformer.nn.heads import MultiHeadAttention
from tformer.nn.rotary import RotaryEmbedding, rotary_frequencies

M = TypeVar("M", bound=nn.Module)
Change = tuple[str, Callable[[Block], object]]  # in words, and as code
BASES = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 5_000_000.0, 150_000.0, 100.0)


class Hints(NamedTuple):
    """Numbers that the other model holds, and that may be what differs."""

    floats: Sequence[float] = ()  # every eps, base, cap
    counts: Sequence[int] = ()  # windows
    frequencies: Sequence[Tensor] = ()  # of rotations


def linear(block: Block, name: str) -> nn.Linear:
    """Return a projection of the attention."""
    return cast(nn.Linear, getattr(block.attention, name))


def copied(module: M) -> M:
    """Copy a module that is to be changed. Its weights are shared, not copied."""
    return deepcopy(module, {id(x): x for x in module.parameters()})


def put(layer: nn.Module, kind: str, value: Tensor) -> None:
    """Put another weight or bias in the place of the one that others share."""
    setattr(layer, kind, nn.Parameter(value.detach(), requires_grad=False))


def reorder(block: Block, rows: Mapping[str, Tensor]) -> None:
    """Put the rows of some projections, and their biases, into another order."""
    for name, order in rows.items():
        layer = linear(block, name)
        put(layer, "weight", layer.weight[order.flatten()])
        if layer.bias is not None:
            put(layer, "bias", layer.bias[order.flatten()])


def with_options(**options: object) -> Callable[[Block], object]:
    """Call the attention with other options."""
    return lambda block: block.attention.register_forward_pre_hook(
        lambda _, args, given: (args, {**given, **options}), with_kwargs=True
    )


def around(change: Callable[..., Tensor]) -> Callable[[Block], object]:
    """Put a function in the place of the attention of all heads."""
    return with_options(around=change)


def set_on_attention(**values: object) -> Callable[[Block], None]:
    """Set attributes of the attention."""

    def change(block: Block) -> None:
        for name, value in values.items():
            setattr(block.attention, name, value)

    return change


def rotations(a: MultiHeadAttention, hints: Hints) -> Iterator[Change]:
    """Yield other rotations of queries and keys."""
    H, G, Dh = a.num_heads, a.num_kv_heads, a.head_dim
    if Dh % 2:
        return
    if not isinstance(a.rotary, RotaryEmbedding):
        for layout in ("halves", "pairs"):
            for base in BASES:
                new = RotaryEmbedding(rotary_frequencies(Dh, base=base), layout=layout)
                told = f"q and k are rotated in {layout} with base {base:g}"
                yield told, set_on_attention(rotary=new)
        return
    old = a.rotary
    names = {"halves": "half-split", "pairs": "interleaved"}
    layout, other = old.layout, {"halves": "pairs", "pairs": "halves"}[old.layout]

    def rotary(frequencies: Tensor, **options: object) -> Callable[[Block], None]:
        new = deepcopy(old)
        new.frequencies = frequencies
        for name, value in options.items():
            setattr(new, name, value)
        return set_on_attention(rotary=new)

    same = "" if a.q_norm else f", as if q_proj and k_proj were {names[layout]} already"
    same = same and f", which is: q_proj and k_proj are permuted to {names[layout]}"
    told = f"rotary pairs are {names[other]} in place of {names[layout]}{same}"
    yield told, rotary(old.frequencies, layout=other)
    halves = torch.arange(Dh).view(-1, 2).t().flatten()  # 0, 2, …, 1, 3, …
    orders = {"halves": halves, "pairs": halves.argsort()}
    for to, order in orders.items():
        if (a.q_norm is not None or to != layout) and Dh > 4:
            heads = {"q_proj": H, "k_proj": G}
            rows = {n: order + Dh * torch.arange(h)[:, None] for n, h in heads.items()}
            told = f"q_proj and k_proj are permuted to {names[to]}"
            yield told, partial(reorder, rows=rows)
    yield "q and k are not rotated", set_on_attention(rotary=None)
    for base in dict.fromkeys((*BASES, *(x for x in hints.floats if x > 1))):
        told = f"the rotary base is {base:g}"
        yield told, rotary(rotary_frequencies(Dh, base=base), factor=1.0)
    for name in ("bfloat16", "float16"):
        short = old.frequencies.to(getattr(torch, name)).double()
        yield f"the rotary frequencies are rounded to {name}", rotary(short)
    for theirs in hints.frequencies:
        if theirs.shape == old.frequencies.shape:
            told = "the rotary frequencies are those of the other model"
            yield told, rotary(theirs.double().cpu())
    for factor in (2.0, 4.0, 8.0, 16.0, 32.0):
        for told, by in (("divided", 1 / factor), ("multiplied", factor)):
            told = f"the rotary frequencies are {told} by {factor:g}"
            yield told, rotary(old.frequencies * by)
    if old.factor != 1:
        told = "the rotary factor (YaRN's) is left out"
        yield told, rotary(old.frequencies, factor=1.0)
    for part in (2, 4):
        if Dh % (2 * part) == 0:
            thin = rotary_frequencies(Dh // part)
            new = RotaryEmbedding(thin, layout=layout, head_dim=Dh)
            told = f"1/{part} of each head is rotated"
            yield told, set_on_attention(rotary=new)

    def backwards(x: Tensor, start: int = 0) -> Tensor:
        places = -torch.arange(start, start + x.shape[2])
        return cast(Tensor, old(x, positions=places))

    class Backwards(nn.Module):
        def forward(self, x: Tensor, start: int = 0) -> Tensor:
            return backwards(x, start)

    yield "q and k are rotated backwards", set_on_attention(rotary=Backwards())


def hints_of(model: object) -> Hints:
    """Collect the numbers that a model and its modules hold."""
    modules = [*model.modules()] if isinstance(model, nn.Module) else []
    floats: set[float] = set()
    counts: set[int] = set()
    tables: list[Tensor] = []
    for module in modules:
        for name, x in [*vars(module).items(), *module.named_buffers(recurse=False)]:
            if isinstance(x, Tensor) and x.ndim == 1 and "freq" in name:
                tables.append(x)
            elif type(x) is float:
                floats.add(x)
            elif type(x) is int:
                counts.add(x)
    return Hints(sorted(floats), sorted(counts), tables)
