"""Where the weights of one model are found in another, by shape and value.

H heads · Dh head_dim
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

EXACT, NARROW = 1e-6, 1e-2  # of the largest entry: the same, and after rounding


@dataclass(frozen=True)
class Found:
    """A weight of A, and where B has it."""

    a: str
    b: str | None  # None: nowhere
    how: str  # equal, transposed, rounded, …


class Piece(NamedTuple):
    """A weight, or a part of a fused one."""

    name: str
    x: Tensor
    kind: Tensor  # what neither order nor factor changes


def find_weights(a: nn.Module, b: nn.Module) -> list[Found]:
    """Look for each weight of A in B: as it is, transposed, permuted, scaled, fused."""
    ours, theirs = whole(a), whole(b)
    found = [find(piece, theirs) for piece in ours]
    if lost := {x.x.shape[0] for x, at in zip(ours, found, strict=True) if not at.b}:
        parts = [part for piece in theirs for part in cut(piece, lost)]
        pairs = zip(ours, found, strict=True)
        found = [at if at.b else find(piece, parts) for piece, at in pairs]
    return found


def whole(model: nn.Module) -> list[Piece]:
    """List all weights in float64."""
    named = model.named_parameters()
    return [made(name, x.detach().cpu().double()) for name, x in named if x.numel() > 1]


def made(name: str, x: Tensor) -> Piece:
    """Make a piece: Σ x⁴ / (Σ x²)² stays if numbers change places or are scaled."""
    square = x.square()
    return Piece(name, x, square.square().sum() / square.sum().square().clamp(1e-300))


def cut(piece: Piece, sizes: set[int]) -> Iterator[Piece]:
    """Cut a fused weight into parts of these sizes, along either axis."""
    for axis, length in enumerate(piece.x.shape[:2]):
        for size in sizes:
            starts = {0, size, length - size, length - 2 * size}
            for start in sorted(s for s in starts if 0 <= s <= length - size < length):
                name = f"{piece.name}[{':, ' * axis}{start}:{start + size}]"
                if size < length:
                    yield made(name, piece.x.narrow(axis, start, size))


def find(piece: Piece, parts: Sequence[Piece]) -> Found:
    """Find one weight, in the plainest form that it has anywhere."""
    best = (99, Found(piece.name, None, "nowhere"))
    for part in parts:
        near = abs(part.kind - piece.kind) <= NARROW * piece.kind
        if part.x.numel() == piece.x.numel() and near:
            for rank, how in forms(piece.x, part.x):
                if rank < best[0]:
                    best = rank, Found(piece.name, part.name, how)
            if best[0] == 0:
                break
    return best[1]


def forms(x: Tensor, y: Tensor) -> Iterator[tuple[int, str]]:
    """Yield in which forms y is x, the plainest with the lowest rank."""
    most = float(x.abs().max())

    def same(one: Tensor, two: Tensor, bound: float = EXACT) -> bool:
        return float((one - two).abs().max()) <= bound * most

    for rank, told, turned in (
        (0, "", y),
        (1, ", transposed", y.mT if y.ndim > 1 else y),
    ):
        if turned.shape != x.shape:
            continue
        if same(x, turned):
            yield rank, f"equal{told}"
            continue
        factor = float((x * turned).sum() / x.square().sum().clamp(1e-300))
        if factor and same(x, turned / factor):  # before what is near, such as 1.01
            yield rank + 4, f"times {factor:.6g}{told}"
        if same(x, turned, NARROW):
            yield rank + 6, f"rounded{told}"
        keys = [z.reshape(len(z), -1) @ weights(z) for z in (x, turned)]
        order = keys[1].argsort()[keys[0].argsort().argsort()]
        if same(x, turned[order]):
            yield rank + 2, f"{permutation(order)}{told}"


def weights(x: Tensor) -> Tensor:
    """Make factors for the sum of a row, so that rows differ by it."""
    width = x[0].numel()
    return torch.linspace(1, 2, width, dtype=x.dtype).sin() + 0.1


def permutation(order: Tensor) -> str:
    """Name an order of rows: x is y in this order."""
    n = len(order)
    for Dh in (d for d in range(4, n + 1, 2) if n % d == 0):
        halves = torch.arange(Dh).view(-1, 2).t().flatten()
        for told, each in (("interleaved", halves), ("half-split", halves.argsort())):
            heads = each + Dh * torch.arange(n // Dh)[:, None]
            if torch.equal(order, heads.flatten()):
                return f"rows permuted to {told} in heads of {Dh}"
    return "rows in another order"


def sentences(found: Sequence[Found]) -> list[str]:
    """Say how many are equal, and what the others are."""
    equal = sum(each.how == "equal" for each in found)
    said = [f"Of {len(found)} weights of A, {equal} are in B as they are."]
    others: dict[str, list[Found]] = {}
    for each in found:
        if each.how != "equal":
            others.setdefault(each.how, []).append(each)
    for how, (first, *rest) in others.items():
        at = "" if first.b is None else f" as {first.b}"
        more = f", and {len(rest)} more" if rest else ""
        said.append(f"In B {how}: {first.a}{at}{more}.")
    return said
