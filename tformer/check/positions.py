"""Specs of positions: sinusoids, a learned table, rotation, and biases by distance."""

from math import cos, sin

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


@Spec(
    Case("two positions", (2, 2)),
    Case("seven positions", (7, 12)),
    Case("odd width", (5, 7)),
    Case("from position 3", (4, 6), {"start": 3}),
    wrong="""
    # positions#the-exponent
    double_exponent: The exponent is 2i/D in the columns 2i and 2i + 1; you doubled the
        column.
        (column - column % 2) → 2 * column
    by_column: Sine and cosine of a pair share one exponent.
        (column - column % 2) → column
    other_base: The base is 10000.
        10000** → 1000**
    # positions#the-layout
    halves: Sines and cosines take turns; you put them in halves.
        return table → return np.concatenate((table[:, 0::2], table[:, 1::2]), 1)
    swapped: Sines stand in even columns, cosines in odd ones.
        cos(angle) if column % 2 else sin(angle) → (sin, cos)[1 - column % 2](angle)
    # positions#the-formula
    from_one: Positions begin at 0; yours begin at 1.
        (start + row) → (start + row + 1)
    """,
)
def sinusoids(length: int, d_model: int, *, start: int = 0) -> Array:
    """Compute the table number by number."""
    table = np.zeros((length, d_model))
    for row, column in np.ndindex(length, d_model):
        exponent = (column - column % 2) / d_model
        angle = (start + row) / 10000**exponent
        table[row, column] = cos(angle) if column % 2 else sin(angle)
    return table


@Spec(
    Case("from the beginning", (draw(2, 2, 3), draw(7, 3), 0)),
    Case("from position 2", (draw(2, 3, 5), draw(7, 5), 2)),
    wrong="""
    # positions#the-wrong-axis
    start_ignored: You begin at position 0 whatever `start` is.
        start + t → t
    by_row: You add the position of the row of the batch.
        start + t → start + b
    """,
)
def learned(x: Array, table: Array, start: int) -> Array:
    """Add the row of its position to each token."""
    output = x.copy()
    for b, t in np.ndindex(x.shape[:2]):
        output[b, t] += table[start + t]
    return output


_X = draw(2, 3, 5, 6)


@Spec(
    Case("one pair", (draw(1, 1, 2, 2), np.array([0, 1]), 1e4)),
    Case("five positions", (_X, np.arange(5), 1e4)),
    Case("from position 7, another base", (_X, np.arange(7, 12), 500.0)),
    Case("positions in any order", (_X, np.array([4, 1, 1, 40, 0]), 1e4)),
    Case("in pairs", (_X, np.arange(5), 1e4), {"layout": "pairs"}),
    wrong="""
    # rotary#the-formula
    backwards: You rotate backwards: (a, b) becomes (a cos - b sin, a sin + b cos).
        = positions[t] → = -positions[t]
    positions_ignored: You count from 0 whatever `positions` says.
        = positions[t] → = t
    along_heads: You rotate by the number of the head: positions go along T.
        = positions[t] → = positions[h]
    half_exponent: The exponent is -2i/Dh; yours is -i/Dh.
        -2 * i / Dh → -i / Dh
    not_rotated: You return x as it came.
        return output → return x.copy()
    # rotary#the-layouts-are-mixed
    pairs: You rotate columns 2i and 2i + 1 together; here a pair is i and i + Dh/2.
        layout == "pairs" → layout != "pears"
    # rotary#the-base-of-another-model
    fixed_base: You take the base 10000 whatever comes in.
        base ** → 1e4 **
    """,
)
def rotary(x: Array, positions: Array, base: float, *, layout: str = "halves") -> Array:
    """Rotate pair by pair."""
    output, Dh = np.zeros(x.shape), x.shape[-1]
    for b, h, t, i in np.ndindex(*x.shape[:3], Dh // 2):
        frequency = base ** (-2 * i / Dh)
        angle = positions[t] * frequency
        first, second = (2 * i, 2 * i + 1) if layout == "pairs" else (i, i + Dh // 2)
        a, c = x[b, h, t, first], x[b, h, t, second]
        output[b, h, t, first] = a * cos(angle) - c * sin(angle)
        output[b, h, t, second] = a * sin(angle) + c * cos(angle)
    return output


def _seen(bias: Array) -> Array:
    """Take from each query the bias of its own key; later keys are hidden anyway."""
    if bias.ndim != 3 or bias.shape[1] > bias.shape[2]:
        return bias
    T, S = bias.shape[1:]
    own = np.array([bias[:, t, S - T + t] for t in range(T)]).T  # (H, T)
    return (bias - own[:, :, None]) * np.tri(T, S, S - T)


@Spec(
    *(
        Case(f"{H} heads, T = {T}, S = {S}", (H, T, S))
        for H, T, S in ((1, 2, 2), (2, 3, 3), (8, 2, 5), (3, 4, 4), (12, 1, 5))
    ),
    wrong="""
    # relative-biases#the-formula
    from_head_0: The first head's slope is 2^(-8/H); yours is 1.
        -8 * (h + 1) / whole → -8 * h / whole
    rewarded: You favour what is far away: the bias is below 0.
        = -(2**exponent) → = 2**exponent
    one_slope: All your heads have the slope of the first.
        (h + 1) / whole → 1 / whole
        (2 * (h - whole) + 1) / (2 * whole) → 1 / whole
    # relative-biases#any-heads
    any_heads: 2^(-8h/H) is for H a power of two; the paper's code has other slopes for
        the rest.
        (h + 1) / whole → (h + 1) / num_heads
        if h >= whole → if False
    """,
    name="alibi",
    normal=_seen,
)
def alibi_bias(num_heads: int, T: int, S: int) -> Array:
    """Compute the bias of each head, query and key."""
    bias, whole = np.zeros((num_heads, T, S)), 1
    while 2 * whole <= num_heads:
        whole *= 2
    for h, t, s in np.ndindex(num_heads, T, S):
        exponent = -8 * (h + 1) / whole
        if h >= whole:  # the first, third, fifth … of twice as many heads
            exponent = -8 * (2 * (h - whole) + 1) / (2 * whole)
        distance = t + S - T - s  # the last query stands at the last key
        bias[h, t, s] = -(2**exponent) * abs(distance)
    return bias


_APART = np.arange(-31, 70, 3)


@Spec(
    Case("T5's decoder", (_APART, 32, 128, False)),
    Case("T5's encoder", (_APART, 32, 128, True)),
    Case("few buckets, odd", (_APART, 7, 20, False)),
    wrong="""
    # relative-biases#the-formula
    other_sign: Distance is the query's position minus the key's.
        int(distance[at]) → -int(distance[at])
    linear: From half of the buckets on, they get wider and wider.
        apart ** (N - exact) >= exact**rest * furthest**j → apart >= exact + j
    # relative-biases#an-encoder-s-buckets-in-a-decoder
    one_direction: In an encoder half of the buckets are for later keys.
        N if both and behind < 0 else 0 → 0
    """,
)
def t5_buckets(distance: Array, buckets: int, furthest: int, both: bool) -> Array:
    """Find the bucket of each distance, by powers of whole numbers."""
    N = buckets // 2 if both else buckets
    exact, bucket = N // 2, np.zeros(distance.shape, int)
    for at in np.ndindex(distance.shape):
        behind = int(distance[at])
        apart = abs(behind) if both else max(behind, 0)
        bucket[at] = min(apart, exact - 1)
        for j in range(N - exact):  # wider and wider
            rest = N - exact - j
            if apart ** (N - exact) >= exact**rest * furthest**j:
                bucket[at] = exact + j
        bucket[at] += N if both and behind < 0 else 0
    return bucket
