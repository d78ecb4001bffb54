"""Whether a model is a function of each text alone: finite, repeatable, row by row.

B batch · T length · V vocabulary
"""

from collections.abc import Iterator

import torch

from tformer.check.black_box.box import Box
from tformer.check.black_box.forms import NotAsked, gap, told
from tformer.check.black_box.report import Finding, Number


def nan(box: Box) -> Iterator[Finding]:
    """Ask whether the logits are finite; -inf may hide a token that never comes."""
    for length in sorted(
        {1, 2, 3, 5, 8, 17, box.longest} - ({2, 3, 8} if box.large else set())
    ):
        if length > box.longest or not box.takes(2, length):
            continue
        logits = box(box.draw(2, length, seed=3))
        wrong = logits.isnan() | (logits == torch.inf)
        if wrong.any():
            place = int(wrong.any(-1).any(0).nonzero()[0])
            count = {"count": int(wrong.sum()), "of": wrong.numel()}
            yield Finding("nan", "logits", {**count, "i": place, "length": length})
            return


def shape(box: Box) -> Iterator[Finding]:
    """Ask for one row and for one token, where a squeeze shows."""
    for rows, length in ((1, min(5, box.longest)), (2, 1), (1, 1)):
        ids = box.draw(rows, length, seed=4)
        try:
            box(ids)
        except ValueError as error:
            if "the model made" not in str(error):
                raise NotAsked(f"of ids {(rows, length)}: {told(error)}") from error
            made = str(error).partition(" made ")[2].partition(", not ")[0]
            numbers: dict[str, Number] = {"rows": rows, "length": length}
            numbers["shape"] = made
            wanted = f"({rows}, {length}, {box.ids})"
            yield Finding("shape", "one", {**numbers, "wanted": wanted})
            return
        except Exception as error:
            raise NotAsked(f"of ids {(rows, length)}: {told(error)}") from error


def random(box: Box) -> Iterator[Finding]:
    """Ask twice, without beginning the random numbers anew.

    Where beginning them anew does not help, a state or numbers of its own are at work:
    fresh copies, which have the same state, tell which.
    """
    ids = box.draw(2 if box.takes(2, box.longest) else 1, box.longest, seed=5)
    model = box.subject()
    own = box.noise > 1e-9
    calls = [box(ids, seed=0 if own else None, model=model) for _ in range(4)]
    if own and (copies := [box.fresh() for _ in range(2)])[0] is not None:
        calls = [box(ids, model=each) for each in copies]
    share, size = gap(*calls[-2:])
    if share.max() > 1e-9 and (own or share.max() > box.near):
        box.by_chance, box.own_numbers = True, own
        yield Finding("random", "eval", {"change": float(size.max())})


def inputs(box: Box) -> Iterator[Finding]:
    """Say whether the ids were changed in any call."""
    if box.changed:
        yield Finding("inputs", "changed")


def state(box: Box) -> Iterator[Finding]:
    """Ask again after other calls, of other lengths and numbers of rows.

    What a fresh copy says is what is right, where there is one.
    """
    if box.noise > 1e-9 and box.own_numbers:
        raise NotAsked("two calls differ by chance")
    T = box.longest
    ids = box.draw(1, T, seed=6)
    short = box.draw(1, max(1, T // 3), seed=8)
    wide = box.draw(3, max(1, T // 2), seed=9)
    fresh, model = box.fresh(), box.fresh() or box.model
    between = [
        ("the same call", ids),
        ("another text", box.other(ids)),
        ("a shorter text", short),
        ("a batch of three", wide),
        ("a text of one token", ids[:, :1]),
    ]
    first = box(ids, model=fresh or model)
    if fresh is not None:  # begin with a short one: a mask of its size may stay
        between.insert(0, ("a shorter text", short))
    for after, other in between:
        try:
            box(other, model=model)
        except Exception:  # noqa: BLE001 - of lengths that it does not take
            continue
        try:
            again = box(ids, model=model)
        except Exception as error:  # noqa: BLE001 - whatever it raises
            yield Finding("state", "raises", {"after": after, "error": told(error)})
            break
        share, size = gap(first, again)
        if share.max() > (1e-6 if fresh is None else 25 * box.eps):
            found: dict[str, Number] = {"after": after, "change": float(size.max())}
            yield Finding("state", "calls", found)
            break
    else:
        return
    box.stateful = True


def batch(box: Box) -> Iterator[Finding]:
    """Ask for a text beside others, beside others still, and alone."""
    T = min(box.longest, 12 if box.large else 48)
    for rows in (2, 3) if box.large else (2, 3, 5):
        if not box.takes(rows, T):
            raise NotAsked(f"it takes no batch of {rows} rows of {T} tokens")
        for seed in range(1 if box.large else 3):
            ids = box.draw(rows, T, seed=10 + seed)
            others = box.other(ids, seed=seed)
            others[0] = ids[0]
            together = box(ids)
            share, size = (x[:1] for x in gap(together, box(others)))
            cause, bound = "others", box.near
            if share.max() <= bound and not box.by_chance:
                pair = [
                    gap(x[None], box(y[None]))
                    for x, y in zip(together, ids, strict=True)
                ]
                share, size = (torch.cat(x) for x in zip(*pair, strict=True))
                cause, bound = "alone", box.far
            if share.max() > bound:
                place = int((share > bound).any(0).nonzero()[0])
                numbers = {"rows": rows, "i": place, "change": float(size.max())}
                box.coupled = True
                yield Finding("batch", cause, numbers)
                return
