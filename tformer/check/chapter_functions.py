"""Specs of the functions that only exercises of chapters ask for.

They stand apart from `SPECS`: no module of the package computes these.
"""

from math import exp, sqrt

import numpy as np

from tformer.check.spec import Array, Case, Function, Oracle, Spec, draw

CHAPTER_SPECS: dict[str, Spec] = {}
FEW = ("state", "inputs")


class ChapterSpec(Spec):
    """A spec of such a function."""

    def __call__(self, oracle: Oracle) -> Oracle:
        """Take the oracle, as a decorator does."""
        self.oracle = oracle
        self.name = self.name or oracle.__name__
        CHAPTER_SPECS[self.name] = self
        return oracle


_GROWING = np.linspace(1, 20, 33)[:, None]


@ChapterSpec(
    Case("three keys", (draw(2), draw(3, 2), draw(3, 4))),
    Case("forty keys, three blocks", (draw(8), draw(40, 8), draw(40, 5))),
    Case("scores that grow", (draw(4), draw(33, 4) * _GROWING, draw(33, 3))),
    Case("scores in the thousands", (4000 * draw(3), draw(20, 3), draw(20, 2))),
    properties=FEW,
    wrong="""
    # attention#why-sqrt
    no_scale: You left out the division by √d.
        / sqrt(len(q)) →
    # tiles#a-rescale-that-is-skipped
    total_kept: When a larger score came, you did not shrink the sum of exponentials.
        total = total * shrink → total = total
    mix_kept: When a larger score came, you did not shrink the weighted sum of values.
        mix = mix * shrink → mix = mix
    nothing_kept: You return the result of the last block alone.
        shrink = exp(best - largest) → shrink = 0.0
    # tiles#the-formula
    undivided: You did not divide by the sum of exponentials.
        return mix / total → return mix
    """,
)
def attention_in_blocks(q: Array, k: Array, v: Array) -> Array:
    """Walk over the keys, sixteen at a time."""
    best, total, mix = -np.inf, 0.0, np.zeros(v.shape[-1])
    for start in range(0, len(k), 16):
        scores = [float(q @ row) / sqrt(len(q)) for row in k[start : start + 16]]
        largest = max(best, *scores)
        shrink = exp(best - largest)
        powers = [exp(score - largest) for score in scores]
        total = total * shrink + sum(powers)
        mix = mix * shrink + np.array(powers) @ v[start : start + 16]
        best = largest
    return mix / total


@ChapterSpec(
    Case("one pair", (draw(3, 2),)),
    Case("five tokens", (draw(5, 6),)),
    properties=(*FEW, "layout", "gradient"),
    wrong="""
    # positions#the-layout
    halves: You turned number i with number i + D/2; here neighbours make a pair.
        for i in range(0, D, 2) → for i in range(D // 2)
        j = i + 1 → j = i + D // 2
        angle = t / 10000 ** (i / D) → angle = t / 10000 ** (2 * i / D)
    # rotary#the-formula
    backwards: You turned backwards: (a, b) becomes (a cos - b sin, a sin + b cos).
        angle = t / → angle = -t /
    from_one: Positions begin at 0: the first token is not turned.
        angle = t / → angle = (t + 1) /
    added: You added the sinusoids; RoPE turns by their angles.
        x[t, i] * c - x[t, j] * s → x[t, i] + s
        x[t, i] * s + x[t, j] * c → x[t, j] + c
    one_clock: Each pair has its own clock; you turned all by the first.
        (i / D) → (0 / D)
    """,
)
def rotate(x: Array) -> Array:
    """Turn each pair of neighbours by the angle of its position."""
    (T, D), turned = x.shape, np.zeros_like(x)
    for t in range(T):
        for i in range(0, D, 2):
            j = i + 1
            angle = t / 10000 ** (i / D)
            c, s = np.cos(angle), np.sin(angle)
            turned[t, i] = x[t, i] * c - x[t, j] * s
            turned[t, j] = x[t, i] * s + x[t, j] * c
    return turned


@ChapterSpec(
    *(Case(f"T = {T}, chunks of {W}", (T, W)) for T, W in ((1, 1), (4, 2), (7, 3))),
    properties=FEW,
    wrong="""
    # long-context#the-formula
    later: You let a query see later tokens of its chunk.
        i // W == j // W and j <= i → i // W == j // W
    window: That is a sliding window: a chunk begins anew at each multiple of W.
        i // W == j // W and j <= i → 0 <= i - j < W
    causal: That is the causal mask, without chunks.
        i // W == j // W and j <= i → j <= i
    inverted: You marked what a query may not see: True = may attend.
        = i // W == j // W and j <= i → = not (i // W == j // W and j <= i)
    transposed: You exchanged the axes: a row is a query, a column a key.
        j <= i → j >= i
    counted: You cut the tokens into W chunks; W is the length of one.
        i // W == j // W → i * W // T == j * W // T
    """,
)
def chunk_mask(T: int, W: int) -> Array:
    """Ask of each query and key whether one sees the other."""
    seen = np.zeros((T, T), bool)
    for i, j in np.ndindex(T, T):
        seen[i, j] = i // W == j // W and j <= i
    return seen


def of_a_mixture(reaches: Function, mixture: Array, T: int) -> object:
    """Ask about a function that mixes tokens as the rows of a matrix say."""
    return reaches(lambda x: (mixture[:, :, None] * x[None]).sum(1) ** 3, T)


@ChapterSpec(
    Case("each token alone", (np.eye(3), 3)),
    Case("a running sum", (np.tri(4), 4)),
    Case("the next token alone", (np.eye(4, k=1), 4)),
    Case("some of the tokens", (draw(5, 5) * (draw(5, 5, seed=1) > 0), 5)),
    run=of_a_mixture,
    properties=("state",),
    wrong="""
    # masks#change-the-future
    transposed: Rows are outputs and columns inputs; you exchanged them.
        seen[t, s] → seen[s, t]
    above: You look above the diagonal only; the table holds every pair.
        > 0 → > 0 and s > t
    whole: You marked a token as soon as any output depends on it.
        y[t] - before[t] → y - before
    signed: You kept the sign: a negative derivative is a dependence, too.
        np.abs(y[t] - before[t]).max() → (y[t] - before[t]).max()
    """,
)
def reaches(function: Function, T: int) -> Array:
    """Change each input, and look which outputs move."""
    x, seen = draw(T, 3), np.zeros((T, T), bool)
    before = np.asarray(function(x))
    for s in range(T):
        other = x.copy()
        other[s] += 1.0
        y = np.asarray(function(other))
        for t in range(T):
            seen[t, s] = np.abs(y[t] - before[t]).max() > 0
    return seen


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
