"""Specs of the functions that only exercises of chapters ask for.

They stand apart from `SPECS`: no module of the package computes these.
"""

from math import exp, sqrt

import numpy as np

from tformer.check.chapter_calls import of_a_mixture
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
