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

Rename = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]
# What stands beside the base model in Hugging Face's classes: it has no prefix.
BESIDE = ("lm_head.", "embed_out.", "cls.", "final_logits_bias")


# Whose files hold experts or projections in orders that a table cannot say.
UNKNOWN = """
mixtral qwen3_moe gpt_oss deepseek_v3 glm4_moe minimax_m2 qwen3_next qwen3_5_text
kimi_linear
"""


class Table(NamedTuple):
    """How a family names weights."""

    rename: Rename  # theirs as ours
    names: tuple[tuple[str, str], ...]  # parts of names, theirs and ours
    joined: Mapping[str, tuple[str, ...]]  # a part of a name, and those it is cut into


class Found(NamedTuple):
    """A weight of theirs, of which `rename` makes one of ours or several."""

    name: str
    shape: tuple[int, ...]
    ours: tuple[str, ...]  # names of ours
    same: bool  # whether it is the one of ours as it is


def their_weights(
    family: ModuleType, config: Config, own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Make of our weights those of which the family's `rename` makes ours.

    Args:
        family: a module of `tformer.models.families`, with `rename`, with the table
            `NAMES` of its parts of names, or a `rename` that is made of one, and with
            `JOINED` if it cuts matrices.
        config: of the model.
        own: all weights of a model of the family, by our names.

    Returns:
        theirs by name; those that need no change are the tensors of `own`.

    Raises:
        ValueError: there is no way back for a weight.
    """
    kind = config["model_type"]
    if kind in UNKNOWN.split():
        raise ValueError(f"model_type ({kind!r}) can be read, but not yet be written")
    rename = partial(family.rename, config=config)
    names = vars(family).get("NAMES")
    table = Table(
        rename, names or family.rename.args[0], vars(family).get("JOINED", {})
    )
    like = {n: torch.empty(x.shape, device="meta") for n, x in own.items()}
    found: dict[str, Found] = {}
    for beside in (False, True):  # a second time beside those that are known
        known = {f.name: torch.empty(f.shape, device="meta") for f in found.values()}
        for name in sorted(like.keys() - {n for f in found.values() for n in f.ours}):
            way = find(table, name, like, known if beside else {})
            if way is not None:
                found[way.name] = way
    for name in sorted(like.keys() - {n for f in found.values() for n in f.ours}):
        raise ValueError(f"{name} has no name in Hugging Face's {kind}")
    theirs = {f.name: own[f.ours[0]] for f in found.values()}
    for way in found.values():
        if not way.same:
            theirs[way.name] = joined(rename, way, own)
    again = rename(theirs)
    for name, x in own.items():
        if name not in again or not torch.equal(again[name], x):
            raise ValueError(f"{name} cannot be written as {kind} has it")
    return theirs


def joined(rename: Rename, way: Found, own: Mapping[str, Tensor]) -> Tensor:
    """Put ours into theirs: where each number goes, `rename` says of their indices."""
    theirs = own[way.ours[0]].new_empty(way.shape)
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
    for whole, ours in wholes(name, table.joined, own):
        wanted = {n: own[n].shape for n in ours}
        shape = (sum(own[n].shape[0] for n in ours), *own[name].shape[1:])
        for theirs in backwards(whole, table.names, all_of_them=bool(known)):
            for turned in dict.fromkeys((shape, shape[::-1], (1, *shape))):
                x = torch.empty(turned, device="meta")
                try:
                    made = table.rename({**known, theirs: x})
                except (IndexError, KeyError, RuntimeError):  # of a wrong shape
                    continue
                new = made.keys() & own.keys() - before
                if {n: made[n].shape for n in new} == wanted:
                    y = made[name]
                    same = (y.shape, y.stride()) == (x.shape, x.stride())
                    return Found(theirs, turned, ours, same and len(ours) == 1)
    return None


def wholes(
    name: str, joined: Mapping[str, tuple[str, ...]], own: Mapping[str, Tensor]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name of the matrix that this one is a part of, and all its parts."""
    for whole, parts in joined.items():
        for part in parts:
            if part in name:
                ours = tuple(name.replace(part, each) for each in parts)
                if own.keys() >= {*ours}:
                    yield name.replace(part, whole), ours
    yield name, (name,)


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
