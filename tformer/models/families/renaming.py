"""Hugging Face's weights by our names: what a family says of its files.

Its table replaces parts of names; a matrix of theirs may hold rows of several of ours.
The way back, `tformer.interop.way_back`, reads what is said here.

E experts
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.models.families import Config, Weights, replace_parts


class Cut(NamedTuple):
    """How a matrix of theirs holds several of ours: in pieces, each with all parts.

    Attributes:
        parts: the ends of our names, with the rows of a piece that each has; where only
            their ratio is known, with numbers in this ratio.
        pieces: such as heads; None if `parts` are all rows of a piece.
    """

    parts: Mapping[str, int]
    pieces: int | None = 1

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        """Cut x (rows, ...), and return of each part the rows of all pieces.

        Too many or too few rows are a ValueError.
        """
        whole, rows = sum(self.parts.values()), x.shape[0] if x.ndim else 0
        pieces = rows // whole if self.pieces is None else self.pieces
        if not rows or rows % pieces or rows // pieces % whole:
            parts = ", ".join(self.parts)
            raise ValueError(f"{rows} rows cannot be cut into {pieces} times {parts}")
        unit = rows // pieces // whole
        x = x.view(pieces, unit * whole, *x.shape[1:])
        cut = torch.split(x, [n * unit for n in self.parts.values()], dim=1)
        return {n: y.flatten(0, 1) for n, y in zip(self.parts, cut, strict=True)}


Cuts = Mapping[str, Cut]
GATE_UP = Cut({"gate_proj": 1, "up_proj": 1})
HALVES: Cuts = {"experts.gate_up_proj": GATE_UP}
IN_TURN: Cuts = {"experts.gate_up_proj": GATE_UP._replace(pieces=None)}

MOST = 4096  # experts of a layer: more are a mistake, or an attack


def ending(*ends: str) -> Callable[[Iterable[str]], Collection[str]]:
    """Choose the names that have one of these ends."""
    return lambda names: {name for name in names if name.endswith(ends)}


class Renaming(NamedTuple):
    """The `rename` of a family: called, it gives Hugging Face's weights our names.

    Attributes:
        names: parts of names, theirs and ours, replaced in this order.
        defaults: the words of a config that does not say them.
        cuts: of a complete config, the matrices that are cut, by the ends of their
            names, such as `attn.c_attn`, without an expert's number; each part of ours
            stands in the place of the last.
        turned: parts of their names of matrices that are (in, out) there.
        convolutions: ends of our names of weights (C, K) that are (C, 1, K) there.
        absent: of a complete config, parts of names that its models do not have, though
            others of the family do. They stay as they are.
        left_out: which names are of no weight of ours.
        in_one: whether their files hold experts in one tensor (E, ...). Without it they
            stand one by one; both are read.
    """

    names: tuple[tuple[str, str], ...]
    defaults: Config = MappingProxyType({})
    cuts: Callable[[Config], Cuts] = lambda _: {}
    turned: tuple[str, ...] = ()
    convolutions: tuple[str, ...] = ()
    absent: Callable[[Config], tuple[str, ...]] = lambda _: ()
    left_out: Callable[[Iterable[str]], Collection[str]] = ending("rotary_emb.inv_freq")
    in_one: bool = False

    def __call__(self, state: Weights, config: Config) -> dict[str, Tensor]:
        """Name Hugging Face's weights as ours."""
        c = {**self.defaults, **config}
        cuts, absent, left_out = self.cuts(c), self.absent(c), self.left_out(state)
        ours: dict[str, Tensor] = {}
        for whole, weight in state.items():
            if any(part in whole for part in absent):
                ours[whole] = weight
            elif whole not in left_out:
                for name, x in one_by_one(whole, weight):
                    turned = x.ndim == 2 and any(part in name for part in self.turned)
                    for one, y in parts_of(name, x.mT if turned else x, cuts):
                        own = replace_parts(one, self.names)
                        wide = own.endswith(self.convolutions or "/")
                        ours[own] = in_two_axes(own, y) if wide else y
        return ours


def one_by_one(name: str, x: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Yield experts that stand in one tensor (E, ...), or any other weight as it is."""
    before, _, last = name.rpartition(".")
    if not before.endswith("experts"):
        yield name, x
        return
    kind = "bias" if last.endswith("_bias") else "weight"
    if x.ndim and len(x) > MOST:
        raise ValueError(f"{name} holds {len(x)} experts: at most {MOST}")
    for i, expert in enumerate(x.unbind()):
        yield f"{before}.{i}.{last.removesuffix('_bias')}.{kind}", expert


def parts_of(name: str, x: Tensor, cuts: Cuts) -> Iterator[tuple[str, Tensor]]:
    """Yield the parts of a matrix that is cut, or any other weight as it is."""
    owner, _, kind = name.rpartition(".")
    whole = next((end for end in ends_of(alike(owner)) if end in cuts), None)
    if whole is None:
        yield name, x
        return
    before = owner[: len(owner) - len(owner.rpartition(".")[2])]
    try:
        cut = cuts[whole](x)
    except ValueError as error:
        raise ValueError(f"{name} has wrong rows: {error}") from error
    for part, rows in cut.items():
        yield f"{before}{part}.{kind}", rows


def in_two_axes(name: str, x: Tensor) -> Tensor:
    """Return the weight of a short convolution, (C, 1, K), as (C, K)."""
    if x.ndim != 3 or x.shape[1] != 1:
        raise ValueError(f"{name} must be (C, 1, K), not {tuple(x.shape)}")
    return x.squeeze(1)


def joined(
    weights: Mapping[str, Tensor], parts: tuple[str, ...], whole: str
) -> dict[str, Tensor]:
    """Put weights whose names end with `parts` in one, row below row, named `whole`.

    Where one of them is missing, the others stay, so that they can be named.
    """
    ours = dict(weights)
    for before in [n.removesuffix(parts[0]) for n in weights if n.endswith(parts[0])]:
        names = [before + part for part in parts]
        if all(name in ours for name in names):
            ours[before + whole] = torch.cat([ours.pop(name) for name in names])
    return ours


def alike(name: str) -> str:
    """Return what the name of an expert's weight has in common with the others'."""
    return re.sub(r"\bexperts\.\d+\.", "experts.", name)


def ends_of(name: str) -> Iterator[str]:
    """Yield a name without its first parts, the longest end first."""
    while name:
        yield name
        name = name.partition(".")[2]
