"""The ids that two models are compared on, and what is rounding between them.

B batch · T length · V vocabulary
"""

import math
from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn

from tformer.interop.compare.recorded import Key, Recorded
from tformer.interop.compare.sources import Side
from tformer.models.causal_lm import CausalLM

SAFETY = 8  # times the rounding that was measured
EPS32 = torch.finfo(torch.float32).eps


def difference(one: Tensor, two: Tensor) -> float:
    """Return the largest difference over the largest entry; NaN if it has none."""
    if one.shape != two.shape:
        return math.nan
    one, two = (x.detach().to("cpu", torch.float64) for x in (one, two))
    both = one.isnan() & two.isnan()
    one, two = one.masked_fill(both, 0), two.masked_fill(both, 0)
    equal = one == two  # infinities too
    off = float((one - two).masked_fill(equal, 0).abs().max())
    return off / max(float(one.abs().max()), 1e-300) if off else 0.0


def some_ids(sides: Sequence[Side]) -> tuple[Tensor, list[Recorded]]:
    """Draw 2 rows of tokens that both models know, as long as both can read.

    Returns:
        ids (2, T), and what the models make of them.
    """
    probe = torch.zeros(1, 2, dtype=torch.int64)
    sizes = [side.run(probe).logits.shape[-1] for side in sides]
    longest, windows = 10**9, [0]
    for side in sides:
        if isinstance(side.model, CausalLM):
            longest = min(longest, max(2, side.model.max_len - 2))
            found = (getattr(m, "window", None) for m in side.model.modules())
            windows += [w for w in found if isinstance(w, int)]
    chance = torch.Generator().manual_seed(0)
    wanted = min(longest, max(32, min(max(windows) + 8, 1024)))
    for T in (wanted, 16, 8, 4):
        ids = torch.randint(min(sizes), (2, min(T, wanted)), generator=chance)
        try:
            return ids, [side.run(ids) for side in sides]
        except ValueError as error:
            wrong = error
    raise wrong


def unsteady(given: Sequence[Side], sides: Sequence[Side], ids: Tensor) -> list[str]:
    """Say which models answer the same ids differently from call to call."""
    said = []
    for side, ready in zip(given, sides, strict=True):
        told = f"{side.letter} answers the same ids differently when called twice"
        if ready.is_random(ids):
            said.append(f"{told}, in eval() too: no difference below is sure.")
            continue
        active = isinstance(side.model, nn.Module) and side.model.training
        if active and side._replace(model=deepcopy(side.model)).is_random(ids):
            told = f"{side.letter} is in train(): dropout is active, and two calls on"
            said.append(f"{told} the same ids differ. Both are compared in eval().")
    return said


def rounding(
    sides: Sequence[Side], ids: Tensor, recorded: tuple[Recorded, Recorded]
) -> tuple[dict[Key, float], dict[Key, float]]:
    """Measure up to which difference a row is rounding.

    Each model runs once more, in float32 if it ran in float64, else in float64.

    Returns:
        for the dtype that both compute in, and for float32: constants such as rotary
        tables are often made in it, and no dtype of a model tells so.
    """
    keys = dict.fromkeys([*recorded[0].rows, *recorded[1].rows])
    grown = dict.fromkeys(keys, 1.0)  # how often the last place of a dtype
    for side, before in zip(sides, recorded, strict=True):
        wide = before.rows[Key("logits")].value.dtype == torch.float64
        again = torch.float32 if wide else torch.float64
        try:
            other = side.in_dtype(again).run(ids)
        except ValueError:  # it runs in its own dtype alone
            continue
        eps = max(torch.finfo(x.coarsest).eps for x in (before, other))
        for key in before.rows.keys() & other.rows.keys():
            off = difference(before.rows[key].value, other.rows[key].value)
            grown[key] = max(grown[key], 0 if math.isnan(off) else off / eps)
    most = 1.0
    for key in keys:  # what a layer has lost, none after it finds again
        most = grown[key] = max(most, grown[key])
    eps = max(torch.finfo(x.coarsest).eps for x in recorded)
    loose = {key: SAFETY * g * max(eps, EPS32) for key, g in grown.items()}
    return {key: SAFETY * g * eps for key, g in grown.items()}, loose
