"""The way back of a family's `rename`: from the names of our weights to theirs.

A family says one way only. Its table, read backwards, proposes names; `rename` decides.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.models.families import Config
from tformer.models.families.renaming import Renaming, alike

Rename = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
# What stands beside the base model in Hugging Face's classes: it has no prefix.
BESIDE = ("lm_head.", "embed_out.", "cls.", "final_logits_bias")
# An expert's weight, by their name: what stands before, and which part of it.
EXPERT = re.compile(r"(.*\.experts)\.\d+\.(\w+)\.(weight|bias)")


class Table(NamedTuple):
    """How a family names weights."""

    rename: Rename  # theirs as ours
    names: tuple[tuple[str, str], ...]  # parts of names, theirs and ours
    # By the ends of their names, parts of matrices, and how many rows of a piece.
    joined: Mapping[str, Mapping[str, int]]
    in_one: bool  # whether all experts of a layer are one tensor


class Found(NamedTuple):
    """A weight of theirs, of which `rename` makes one of ours or several."""

    name: str
    shape: tuple[int, ...]
    ours: tuple[str, ...]  # names of ours
    same: bool  # whether it is the one of ours as it is


def table_of(family: ModuleType, config: Config) -> Table:
    """Gather how a family names the weights of a model of this config."""
    rename, told = partial(family.rename, config=config), family.rename
    if isinstance(told, Renaming):
        cuts = told.cuts({**told.defaults, **config})
        parts = {whole: cut.parts for whole, cut in cuts.items()}
        return Table(rename, told.names, parts, told.in_one)
    return Table(rename, family.NAMES, vars(family).get("JOINED", {}), in_one=False)


def their_weights(
    family: ModuleType, config: Config, own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Make of our weights those of which the family's `rename` makes ours.

    Args:
        family: a module of `tformer.models.families`, whose `rename` is a `Renaming`,
            or a function beside the table `NAMES` of its parts of names, and `JOINED`
            if it cuts matrices. Where it has `ONE_WAY`, this is the reason why not.
        config: of the model.
        own: all weights of a model of the family, by our names.

    Returns:
        theirs by name; those that need no change are the tensors of `own`.

    Raises:
        ValueError: there is no way back for a weight.
    """
    kind, table = config["model_type"], table_of(family, config)
    if reason := vars(family).get("ONE_WAY"):
        raise ValueError(f"{kind} is read and not written: {reason}")
    like = {n: torch.empty(x.shape, device="meta") for n, x in own.items()}
    found: dict[str, Found] = {}
    done: set[str] = set()
    for beside in (False, True):  # a second time beside those that are known
        known = {f.name: torch.empty(f.shape, device="meta") for f in found.values()}
        for name in sorted(like):
            way = None
            if name not in done:
                way = find(table, name, like, known if beside else {})
            if way is not None:
                found[way.name] = way
                done |= {*way.ours}
    for name in sorted(like.keys() - done):
        raise ValueError(f"{name} has no name in Hugging Face's {kind}")
    theirs = {f.name: own[f.ours[0]] for f in found.values()}
    for way in found.values():
        if not way.same:
            theirs[way.name] = joined(table.rename, way, own)
    again = table.rename(theirs)
    for name, x in own.items():
        if name not in again or not torch.equal(again[name], x):
            raise ValueError(f"{name} cannot be written as {kind} has it")
    return theirs


def joined(rename: Rename, way: Found, own: Mapping[str, Tensor]) -> Tensor:
    """Put ours into theirs, through the views of it that `rename` makes.

    Where it copies instead, it says of their indices where each number goes.
    """
    theirs = own[way.ours[0]].new_empty(way.shape)
    places = rename({way.name: theirs})
    memory = theirs.untyped_storage().data_ptr()
    if all(places[n].untyped_storage().data_ptr() == memory for n in way.ours):
        for name in way.ours:
            places[name].copy_(own[name])
        return theirs
    index = torch.arange(theirs.numel(), device=theirs.device).view(way.shape)
    places = rename({way.name: index})
    for name in way.ours:
        theirs.view(-1)[places[name].reshape(-1)] = own[name].reshape(-1)
    return theirs


def find(
    table: Table, name: str, own: Mapping[str, Tensor], known: Mapping[str, Tensor]
) -> Found | None:
    """Find the weight of theirs of which `rename` makes this one, if there is one.

    Args:
        table: of the family.
        name: of ours.
        own: what the weights of ours are like, on the meta device.
        known: those of theirs that stand beside it: what `rename` does may hang on it.
    """
    before = table.rename(known).keys()
    names = backwards(name, table.names, all_of_them=bool(known))
    experts = sum(alike(each) == alike(name) for each in own) if table.in_one else 0
    for theirs, shape, several in wholes(names, own[name].shape, table, experts):
        turned = (*shape[:-2], *shape[-2:][::-1])  # (in, out)
        wide = (1, *shape), (shape[0], 1, *shape[1:])
        for guess in dict.fromkeys((shape, turned, *wide)):
            x = torch.empty(guess, device="meta")
            try:
                made = table.rename({**known, theirs: x})
            except (IndexError, KeyError, RuntimeError, ValueError):  # a wrong shape
                continue
            new = made.keys() - before if several else made.keys() & own.keys() - before
            fits = all(n in own and made[n].shape == own[n].shape for n in new)
            if name in new and fits and (several or len(new) == 1):
                y = made[name]
                same = (y.shape, y.stride()) == (x.shape, x.stride())
                return Found(theirs, guess, tuple(sorted(new)), same and len(new) == 1)
    return None


def wholes(
    names: list[str], shape: tuple[int, ...], table: Table, experts: int
) -> Iterator[tuple[str, tuple[int, ...], bool]]:
    """Yield what may be the tensor of theirs that this weight is, or is a part of.

    First come those that hold several of ours.

    Args:
        names: theirs that this weight may have by itself.
        shape: of this weight.
        table: of the family.
        experts: how many experts there are beside it.

    Yields:
        name, shape, and whether it may hold several.
    """
    for name in names:
        owner, _, kind = name.rpartition(".")
        held = []
        for whole, parts in table.joined.items():
            place, last = ("." + whole).rpartition(".")[::2]
            for part, rows in parts.items():
                if ("." + alike(owner)).endswith(f"{place}.{part}"):
                    total = shape[0] * sum(parts.values()) // rows
                    held += [(owner[: -len(part)] + last, (total, *shape[1:]))]
        for one, size in [*held, (owner, shape)]:
            expert = EXPERT.fullmatch(f"{one}.{kind}")
            if expert is None and held and (one, size) != (owner, shape):
                yield f"{one}.{kind}", size, True
            elif expert is not None and table.in_one:
                before, part, bias = expert.groups()
                end = "_bias" if bias == "bias" else ""
                yield f"{before}.{part}{end}", (experts, *size), True
    for name in names:
        yield name, shape, False


def backwards(
    name: str, table: tuple[tuple[str, str], ...], *, all_of_them: bool = True
) -> list[str]:
    """Read a table of (theirs, ours) backwards: names with most replacements first.

    A prefix, a row where ours is empty, counts less: it may stand before any name.

    Args:
        name: of ours.
        table: as `NAMES` of a family.
        all_of_them: propose names too in which fewer parts than possible are replaced,
            of which a rename that looks at one weight alone makes ours as well.
    """
    rows: dict[str, tuple[int, ...]] = {name: ()}
    for row in reversed(range(len(table))):
        theirs, ours = table[row]
        for each, used in [*rows.items()]:
            if ours:  # a part begins where the name does, or after a dot
                new = re.sub(rf"(?<![^.]){re.escape(ours)}", theirs, each)
            else:
                new = each if each.startswith(BESIDE) else theirs + each
            if new != each:
                rows.setdefault(new, (row, *used))

    def replaced(each: str) -> tuple[int, int]:
        return sum(bool(table[row][1]) for row in rows[each]), len(rows[each])

    most = max(map(replaced, rows))
    proposed = [each for each in rows if all_of_them or replaced(each) == most]
    order = sorted(proposed, key=rows.__getitem__)
    return sorted(order, key=replaced, reverse=True)
