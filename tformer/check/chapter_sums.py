"""Specs of sums over parts, of tiles, experts and rows, that only exercises ask for."""

from math import exp

import numpy as np

from tformer.check import norms
from tformer.check.chapter_functions import FEW, ChapterSpec
from tformer.check.spec import SPECS, Array, Case, draw


def _half(
    *shape: int, seed: int, dead: tuple[int, ...] = (), base: float = 0.0
) -> tuple[Array, Array]:
    """Draw the output and the L of one machine."""
    output, sums = draw(*shape, seed=seed), base + 3 * draw(*shape[:-1], 1, seed=seed)
    output[..., dead, :], sums[..., dead, :] = 0.0, -np.inf
    return output, sums


_ALIVE = (*_half(1, 1, 3, 2, seed=0), *_half(1, 1, 3, 2, seed=1))
_ONE_DEAD = (*_half(1, 2, 4, 3, seed=2, dead=(1,)), *_half(1, 2, 4, 3, seed=3))
_BOTH_DEAD = (
    *_half(1, 1, 4, 3, seed=4, dead=(0, 2)),
    *_half(1, 1, 4, 3, seed=5, dead=(2,)),
)
_LARGE = (
    *_half(1, 1, 2, 3, seed=6, base=2000.0),
    *_half(1, 1, 2, 3, seed=7, base=2001.0),
)


@ChapterSpec(
    Case("two halves", _ALIVE),
    Case("a query that is dead on one machine", _ONE_DEAD),
    Case("a query that is dead on both", _BOTH_DEAD),
    Case("L in the thousands", _LARGE),
    properties=(*FEW, "layout"),
    wrong="""
    # tiles#the-formula
    average: You took the mean; an output counts by e to the power of its L.
        exp(a - most), exp(b - most) → 1.0, 1.0
    by_L: You weighted by L itself; an output counts by e to the power of its L.
        exp(a - most), exp(b - most) → a, b
    sum: You added the halves without dividing by the sum of their weights.
        / (first + second) → / 1.0
    swapped: You gave each half the weight of the other.
        first, second = → second, first =
    # tiles#rows-that-may-attend-to-nothing
    both_dead: A query that is dead on both machines must get zeros.
        if most == -np.inf: → if most is None:
        exp(a - most), exp(b - most) → np.exp(a - most), np.exp(b - most)
    # tiles#a-rescale-that-is-skipped
    no_largest: You did not subtract the larger L: e to the power of it overflows.
        exp(a - most), exp(b - most) → np.exp(a), np.exp(b)
    """,
)
def merge(o1: Array, L1: Array, o2: Array, L2: Array) -> Array:
    """Weigh the two outputs of each query."""
    merged = np.zeros_like(o1)
    for at in np.ndindex(o1.shape[:-1]):
        a, b = float(L1[at][0]), float(L2[at][0])
        most = max(a, b)
        if most == -np.inf:
            continue
        first, second = exp(a - most), exp(b - most)
        merged[at] = (first * o1[at] + second * o2[at]) / (first + second)
    return merged


_SCORES = np.abs(draw(6, 12))


@ChapterSpec(
    Case("one of two groups", (np.array([[0.9, 0.1, 0.0, 0.6, 0.5, 0.2]]), 2, 2, 1)),
    Case("two of four groups", (_SCORES, 3, 4, 2)),
    Case("all groups", (_SCORES, 4, 3, 3)),
    Case("scores below 0", (-_SCORES, 3, 4, 2)),
    properties=FEW,
    normal=lambda x: np.sort(x, -1),
    wrong="""
    # experts#the-formula
    best_alone: A group counts by the sum of its two best; you took its best alone.
        [-2:] → [-1:]
    whole: A group counts by the sum of its two best; you added all of it.
        [-2:] → [-99:]
    ungrouped: You let a token use experts of every group.
        if e // size in kept → if kept
    worst: You took the groups that count least.
        reverse=True)[:allowed] → reverse=False)[:allowed]
    every_nth: A group is of neighbours; you took experts that are G apart.
        row[g * size : (g + 1) * size] → row[g::groups]
        if e // size in kept → if e % groups in kept
    # experts#a-group-is-hidden-by-0
    zeros: You hid the other groups by a score of 0, which wins below 0: take -inf.
        left = [e for e in range(len(row)) if e // size in kept] →
            left = [*range(len(row))]
        key=lambda e: row[e], → key=lambda e: row[e] if e // size in kept else 0.0,
    """,
)
def choose(scores: Array, k: int, groups: int, allowed: int) -> Array:
    """Choose groups, then experts in them, one token at a time."""
    chosen = []
    size = scores.shape[-1] // groups
    for row in scores:
        parts = [sorted(row[g * size : (g + 1) * size]) for g in range(groups)]
        counts = [sum(part[-2:]) for part in parts]
        kept = sorted(range(groups), key=lambda g: counts[g], reverse=True)[:allowed]
        left = [e for e in range(len(row)) if e // size in kept]
        chosen.append(sorted(left, key=lambda e: row[e], reverse=True)[:k])
    return np.array(chosen)


@ChapterSpec(
    Case("one row", (draw(1, 2), draw(3, 2), np.array([2]))),
    Case("thirteen rows", (draw(13, 6), draw(17, 6), np.arange(13) * 5 % 17)),
    properties=(*FEW, "layout"),
    wrong="""
    # loss#the-formula
    sum: You added up the losses; the mean is asked for.
        N = len(y) → N = 1
    target_ignored: The gradient is p - q; you left out q, the right token.
        p[y[n]] -= 1 → p[y[n]] -= 0
    last_row: You kept the gradient of E of the last slice alone.
        of_E += → of_E =
    undivided: You divided the loss by N, but not the gradients.
        p /= N → p /= 1
    """,
)
def loss_and_gradients(h: Array, E: Array, y: Array) -> tuple[Array, Array, Array]:
    """Add up both gradients in one pass, a row at a time."""
    loss, of_h, of_E = np.zeros(()), np.zeros_like(h), np.zeros_like(E)
    N = len(y)
    for n in range(len(y)):
        z = E @ h[n]
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        loss = loss - np.log(p[y[n]]) / N
        p[y[n]] -= 1
        p /= N
        of_h[n] = p @ E
        of_E += np.outer(p, h[n])
    return loss, of_h, of_E


# In a chapter RMSNorm is two lines: what they do in narrow dtypes is not asked.
_FORMULA = ("state", "inputs", "layout", "gradient")
_NORM = SPECS[norms.rms_norm.__name__]
ChapterSpec(*_NORM.cases, wrong=_NORM.wrong, properties=_FORMULA)(norms.rms_norm)
