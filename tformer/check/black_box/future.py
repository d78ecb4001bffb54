"""Whether a later token changes an earlier logit, or only appending one does.

B batch · T length · V vocabulary
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tformer.check.black_box.box import Box
from tformer.check.black_box.copying import module_in
from tformer.check.black_box.forms import NotAsked, gap
from tformer.check.black_box.report import Finding


class Leak(NamedTuple):
    """Two texts that are equal before position j, and have other logits at i < j."""

    before: Tensor  # (T,)
    after: Tensor  # (T,)
    i: int
    j: int
    change: float


def leaks(box: Box, rows: Tensor, others: Tensor, begin: Tensor) -> Leak | None:
    """Find the shortest leak: rows (N, T) and others differ from `begin` (N,) on."""
    shares, sizes = box.pairs(rows, others)
    T = rows.shape[1]
    early = torch.arange(T)[None] < begin[:, None]
    wrong = early & (shares > box.near)
    if not wrong.any():
        return None
    row = int(wrong.any(1).nonzero()[0])
    i = int(torch.where(wrong[row], shares[row], -1.0).argmax())
    return Leak(rows[row], others[row], i, int(begin[row]), float(sizes[row, i]))


def places(length: int, count: int) -> Tensor:
    """Choose up to `count` of the places 1 to T - 1, those of short lengths first."""
    every = torch.arange(1, length)
    if len(every) <= count:
        return every
    first = [
        x for x in (1, 2, 3, 4, 8, 16, 17, 18, 32, 33, 64, 65, length - 1) if x < length
    ]
    spread = torch.linspace(1, length - 1, max(2, count - len(first))).long()
    return torch.tensor(sorted({*first, *spread.tolist()}))


def any_text(box: Box, seconds: float) -> Leak | None:
    """Change all tokens from a place on, at each place of short and long texts."""
    for length in sorted({min(box.longest, 7), min(box.longest, 24), box.longest}):
        if length < 2:
            continue
        tokens = box.affordable(2 * length * length, seconds)
        begin = places(length, tokens // (2 * length))
        rows = box.draw(len(begin), length, seed=20)
        late = torch.arange(length)[None] >= begin[:, None]
        for seed in (1, 2):
            others = torch.where(late, box.other(rows, seed=seed), rows)
            if found := leaks(box, rows, others, begin):
                return found
            one = torch.arange(length)[None] == begin[:, None]
            others = torch.where(one, box.other(rows, seed=seed), rows)
            if found := leaks(box, rows, others, begin):
                return found
            if box.cost * length * length > seconds / 10:
                break
    return None


def any_id(box: Box, seconds: float) -> tuple[Leak | None, int]:
    """Put each id of the vocabulary into a text that has few others: (leak, how many).

    What hangs on one id does not show in texts that lack it, or have it everywhere.
    """
    draw = torch.Generator().manual_seed(5)
    ids = torch.randperm(box.ids, generator=draw)
    ends = [*range(min(16, box.ids)), *range(max(0, box.ids - 16), box.ids)]
    asked = torch.cat([torch.tensor(ends), ids]).tolist()
    ids = torch.tensor([*dict.fromkeys(asked)])
    count = len(ids)
    for trial, length in enumerate((min(box.longest, 12), min(box.longest, 40))):
        if length < 2:
            continue
        some = ids[: box.affordable(2 * length * len(ids), seconds) // (2 * length)]
        count = min(count, len(some))
        few = box.draw(1, length, seed=30 + trial) % 3 + 3 * trial
        rows = (few % box.ids).expand(len(some), -1).contiguous()
        begin = torch.randint(1, length, (len(some),), generator=draw)
        others = rows.clone()
        others[torch.arange(len(some)), begin] = some
        if found := leaks(box, rows, others, begin):
            return found, count
    return None, count


def find(box: Box, seconds: float) -> tuple[Leak | None, str]:
    """Find a leak in eval(), and say what was not tried."""
    if box.longest < 2 or box.ids < 2:
        raise NotAsked("it takes no two tokens, or knows no two ids")
    leak = any_text(box, seconds)
    if leak is not None:
        return leak, ""
    leak, count = any_id(box, seconds)
    return leak, "" if count >= box.ids else f"{count} of {box.ids} ids were tried each"


def in_training(box: Box) -> Leak | None:
    """Ask the same in train(), with the same random numbers in each call."""
    pupil = box.fresh()
    if (module := module_in(pupil)) is None:
        return None
    module.train()
    T = min(box.longest, 16)
    trained = box.with_model(box.model)
    trained.coupled, trained.stateful = True, True  # a fresh copy for each call
    trained.pristine = pupil
    rows = box.draw(1, T, seed=40).expand(3, -1)
    try:
        shares, _ = trained.pairs(rows[:1], rows[:1])
        if shares.max() > 0:
            return None
        begin = torch.tensor([1, T // 2, T - 1])
        late = torch.arange(T)[None] >= begin[:, None]
        return leaks(trained, rows, torch.where(late, box.other(rows), rows), begin)
    except Exception:  # noqa: BLE001 - some want targets there
        return None


def length(box: Box) -> Iterator[Finding]:
    """Ask for the beginning of a text alone, and with what follows it."""
    T = box.longest
    if box.by_chance:
        raise NotAsked("two calls differ")
    taken = 0
    for seed in (50,) if box.large else (50, 51):
        text = box.draw(1, T, seed=seed)
        whole = box(text)
        for n in sorted({1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 64, T // 2, T - 1}):
            if not 0 < n < T or not box.takes(1, n):
                continue
            taken += 1
            share, size = gap(whole[:, :n], box(text[:, :n]))
            if share.max() > box.far:
                i = int((share[0] > box.far).nonzero()[0])
                change = float(size.max())
                numbers = {"length": T, "short": n, "i": i, "change": change}
                yield Finding("length", "appended", numbers)
                return
    if not taken:
        raise NotAsked("it takes texts of one length alone")
