"""The first layer in which two language models differ, and why.

B batch · T length · D d_model · V vocabulary
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import cast

import torch
from torch import Tensor, nn

from tformer.interop.compare.explaining import Explaining, Guess
from tformer.interop.compare.measuring import difference, rounding, some_ids, unsteady
from tformer.interop.compare.recorded import Key, Recorded, together
from tformer.interop.compare.rotary_changes import hints_of
from tformer.interop.compare.sources import Side, Source, open_model
from tformer.interop.compare.weights import Found, find_weights, sentences


@dataclass(frozen=True)
class Layer:
    """A row of the table."""

    name: str
    a: str  # the module's name in A, and in B
    b: str
    matched: str  # by what
    difference: float | None  # over A's largest entry; None if there is no number
    rounding: float  # up to which it is rounding
    alone: float | None  # the difference when the layer gets the same input
    differs: bool


@dataclass(frozen=True)
class Comparison:
    """What `compare` found; printed, it is a table and sentences."""

    equal: bool
    layers: tuple[Layer, ...]
    first: str | None  # the first layer that differs by more than rounding
    guesses: tuple[Guess, ...]  # proven
    changed: str  # which of the models a guess speaks of
    unexplained: tuple[Key, ...]  # layers that differ and for which no guess fits
    notes: tuple[str, ...]
    weights: tuple[Found, ...]  # if not equal, where each weight of A is in B

    def as_json(self) -> dict[str, object]:
        """Return all of it as numbers, words, lists and dicts."""
        said = [{**asdict(g), "layers": [*map(str, g.layers)]} for g in self.guesses]
        unexplained = [str(key) for key in self.unexplained]
        return asdict(self) | {"guesses": said, "unexplained": unexplained}

    def __str__(self) -> str:
        head = ("layer", "in A", "in B", "difference", "rounding", "alone", "")
        lines = [head, *(cells(layer) for layer in self.layers)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(x.ljust(w) for x, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([*table, "", *self.sentences()])

    def sentences(self) -> list[str]:
        """Say what the table shows."""
        said = [*self.notes]
        if self.equal:
            off = max(layer.difference or 0 for layer in self.layers)
            most = max(layer.rounding for layer in self.layers)
            told = f"at most {off:.1e} of the largest entry, where {most:.0e} may be"
            return [*said, f"A and B are equal, up to rounding: {told}."]
        if self.first:
            said.append(f"The first layer that differs: {self.first}.")
        other = {"A": "B", "B": "A"}.get(self.changed, "")
        for guess in self.guesses:
            proof = f"(there {guess.before:.1e} falls to {guess.after:.1e})"
            told = f"{together(guess.layers)}: {other} is equal if in {self.changed}"
            said.append(f"{told} {guess.sentence} {proof}.")
        if not self.changed:
            said.append("No change was tried: neither is a language model of tformer's "
                "families.")  # fmt: skip
        if self.weights:
            said += sentences(self.weights)
        if self.unexplained:
            said.append(f"Not explained: {together(self.unexplained)}.")
        return said


def cells(layer: Layer) -> tuple[str, ...]:
    """Return the cells of a row."""
    number = "none" if layer.difference is None else f"{layer.difference:.1e}"
    alone = "" if layer.alone is None else f"{layer.alone:.1e}"
    mark = "differs" if layer.differs else ""
    names = (x or "-" for x in (layer.a, layer.b))
    return layer.name, *names, number, f"{layer.rounding:.0e}", alone, mark


def compare(
    a: Source,
    b: Source,
    ids: Tensor | None = None,
    *,
    dtype: torch.dtype = torch.float64,
) -> Comparison:
    """Run two language models on the same ids and find the first layer that differs.

    Neither model is changed: copies run, in `eval()`. What is rounding is measured: a
    model is run in float32 and in float64, and eight times the difference is allowed.

    Args:
        a: a folder of ours or of Hugging Face's, "FILE.py:FUNCTION" whose function
            returns a model, a module, or any function of ids. It may return logits
            (B, T, V), an object with `logits`, or a tuple that begins with them.
        b: the same.
        ids: (B, T); 2 rows by chance if not given.
        dtype: in which both compute, if they can.

    Raises:
        OSError: a file is missing.
        TypeError: one is no model, or ids are no integers.
        ValueError: a folder is damaged, or one of them raises an error.
    """
    notes: list[str] = []
    given = [Side(x, open_model(s), notes) for x, s in (("A", a), ("B", b))]
    sides = [side.ready(dtype) for side in given]
    if ids is None:
        ids, (one, two) = some_ids(sides)
    elif ids.ndim != 2 or ids.dtype not in (torch.int32, torch.int64) or not len(ids):
        told = f"not {ids.dtype} {tuple(ids.shape)}"
        raise TypeError(f"ids must be integers (B, T), {told}")
    else:
        one, two = (side.run(ids) for side in sides)
    random = unsteady(given, sides, ids)
    notes += random
    sizes = [x.logits.shape[-1] for x in (one, two)]
    if sizes[0] != sizes[1]:
        notes.append(f"A scores {sizes[0]} tokens, B {sizes[1]}: the first "
            f"{min(sizes)} are compared.")  # fmt: skip
    depths = [len(x.inputs) for x in (one, two)]
    if depths[0] != depths[1] and min(depths):
        notes.append(f"A has {depths[0]} blocks, B {depths[1]}.")
    notes += no_numbers(one, two)
    bounds = rounding(sides, ids, (one, two))
    explained = explain(sides, ids, (one, two), bounds)
    layers = table(one, two, bounds[1], explained.alone if explained else {})
    first = next((x.name for x in layers if x.differs), None)
    guesses = tuple(explained.guesses) if explained else ()
    if guesses and first is None:  # smaller than float32's rounding, and proven
        first = str(guesses[0].layers[0])
    equal = first is None and not random and sizes[0] == sizes[1]
    unexplained = tuple(explained.unexplained) if explained and first else ()
    models = [side.model for side in sides]
    weights: list[Found] = []
    if not equal and all(isinstance(model, nn.Module) for model in models):
        weights = find_weights(*cast(list[nn.Module], models))
    changed = explained.letter if explained else ""
    return Comparison(equal, tuple(layers), first, guesses, changed, unexplained,
        tuple(notes), tuple(weights))  # fmt: skip


def explain(
    sides: Sequence[Side],
    ids: Tensor,
    recorded: tuple[Recorded, Recorded],
    bounds: tuple[Mapping[Key, float], Mapping[Key, float]],
) -> Explaining | None:
    """Look for what differs, in a model of ours; in B if nothing is found in A."""
    found = []
    for side, mine, theirs in zip(sides, recorded, recorded[::-1], strict=True):
        ours = side.as_ours()
        if ours is None:
            continue
        with torch.no_grad():
            logits = ours(ids)[:, -mine.logits.shape[1] :]
        if difference(mine.logits, logits) > bounds[1][Key("logits")]:
            continue  # read from Hugging Face's, and not the same
        other = next(x for x in sides if x is not side)
        each = Explaining(ours, theirs, bounds, ids, hints_of(other.model), side.letter)
        each.run()
        if not each.unexplained:
            return each
        found.append(each)
    return min(found, key=lambda each: len(each.unexplained), default=None)


def table(
    one: Recorded,
    two: Recorded,
    bounds: Mapping[Key, float],
    alone: Mapping[Key, float],
) -> list[Layer]:
    """Set the rows of both models beside each other, in the order of A's."""
    layers = []
    for key in dict.fromkeys([*one.rows, *two.rows]):
        a, b = one.rows.get(key), two.rows.get(key)
        off = math.nan
        if a is not None and b is not None:
            off = difference(*alike(key, a.value, b.value))
        elif key.role != "block" or not (one.inputs and two.inputs):
            off = 0.0  # one has no module for it: the row after it tells
        in_a, in_b = ((x and (x.module or "(output)")) or "" for x in (a, b))
        how = " and ".join(dict.fromkeys(r.how for r in (a, b) if r is not None))
        number = None if math.isnan(off) or a is None or b is None else off
        layers.append(Layer(str(key), in_a, in_b, how, number, bounds[key],
            alone.get(key), not off <= bounds[key]))  # fmt: skip
    return layers


def alike(key: Key, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Cut logits to the positions and tokens that both have."""
    if key.role != "logits":
        return x, y
    T, V = (min(x.shape[i], y.shape[i]) for i in (1, 2))
    return x[:, -T:, :V], y[:, -T:, :V]


def no_numbers(one: Recorded, two: Recorded) -> list[str]:
    """Say of the first layer without a difference why there is none."""
    for key, a in one.rows.items():
        if (b := two.rows.get(key)) is None:
            continue
        x, y = alike(key, a.value, b.value)
        if x.shape != y.shape:
            return [f"{key} is {tuple(x.shape)} in A, {tuple(y.shape)} in B."]
        if math.isnan(difference(x, y)):
            many = [f"{int(z.isnan().sum())} of {z.numel()}" for z in (x, y)]
            return [f"{key}: A has NaN in {many[0]} numbers, B has NaN in {many[1]}."]
    return []
