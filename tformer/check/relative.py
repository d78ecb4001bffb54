"""Specs of biases by distance: ALiBi, and T5's buckets."""

import numpy as np

from tformer.check.spec import Array, Case, Spec


def _seen(bias: Array) -> Array:
    """Take from each query the bias of its own key; later keys are hidden anyway."""
    if bias.ndim == 4:
        return np.array([_seen(each) for each in bias])
    if bias.ndim != 3 or bias.shape[1] > bias.shape[2]:
        return bias
    T, S = bias.shape[1:]
    own = np.array([bias[:, t, S - T + t] for t in range(T)]).T  # (H, T)
    with np.errstate(invalid="ignore"):  # -inf may stand at what comes later
        return np.where(np.tri(T, S, S - T, bool), bias - own[:, :, None], 0.0)


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
    no_factor: The exponent is -8h/H; you left out the 8.
        -8 * (h + 1) / whole → -1 * (h + 1) / whole
        -8 * (2 * (h - whole) + 1) / (2 * whole) → -(2 * (h - whole) + 1) / (2 * whole)
    by_one: Your slopes halve from head to head, whatever H is; it is 2^(-8h/H).
        -8 * (h + 1) / whole → -(h + 1)
        if h >= whole → if False
    by_one_from_0: Your slopes are 1, 1/2, 1/4 … whatever H is; it is 2^(-8h/H).
        -8 * (h + 1) / whole → -h
        if h >= whole → if False
    base_e: Your slopes are powers of e; they are powers of 2.
        2**exponent → 2.718281828459045**exponent
    factor_of_16: The exponent is -8h/H; yours is -16h/H.
        -8 * (h + 1) / whole → -16 * (h + 1) / whole
        -8 * (2 * (h - whole) + 1) → -16 * (2 * (h - whole) + 1)
    all_heads_below: Of the power of two below H the slopes are 2^(-8h/n); you divide by
        H.
        -8 * (h + 1) / whole → -8 * (h + 1) / num_heads
    others_too_steep: Of the other heads the exponent is that of twice as many heads.
        (2 * (h - whole) + 1) / (2 * → (2 * (h - whole) + 1) / (1 *
    linear: Your slopes are h / H; they are 2^(-8h/H).
        -(2**exponent) → -((h + 1) / num_heads)
    harmonic: Your slopes are 1, 1/2, 1/3 …; they are 2^(-8h/H).
        -(2**exponent) → -(1 / (h + 1))
    no_slope: You left the slopes out.
        -(2**exponent) → -1.0
    reversed_slopes: Your heads have the slopes in the other order.
        return bias → return bias[::-1]
    squared: You squared the distance.
        abs(distance) → distance**2
    slope_of_distance: You raised the slope to the distance: it is multiplied.
        -(2**exponent) * abs(distance) → -(2 ** (exponent * abs(distance)))
    root_of_distance: You took a power of the distance: it is multiplied as it is.
        abs(distance) → abs(distance) ** 0.5
    relative: You divided the distance by the number of keys: it counts tokens.
        abs(distance) → abs(distance) / S
    logarithm_of_distance: You took the logarithm of the distance.
        abs(distance) → np.log1p(abs(distance))
    next_power: For H that is no power of two you take slopes of the power above.
        while 2 * whole <= num_heads: → while whole < num_heads:
        if h >= whole → if False
    even_of_twice: Of twice as many heads you take the second, fourth …: take the first
        and third.
        (2 * (h - whole) + 1) / (2 * → (2 * (h - whole) + 2) / (2 *
    batch_axis: Your result has an axis of the batch in front: it is (H, T, S).
        return bias → return bias[None]
    heads_last: Your result has the heads at its end: it is (H, T, S).
        return bias → return np.moveaxis(bias, 0, -1)
    one_row: Your result has one row for all queries: it is (H, T, S).
        return bias → return bias[:, -1:]
    square: Your result is (H, T, T): it must be (H, T, S).
        bias, whole = → S = T; bias, whole =
    goes_on: You go on with smaller slopes where H is no power of two.
        if h >= whole → if False
    zeros: Your bias is the same for all keys of a query: it falls with the distance.
        abs(distance) → 0
    one_half: All your heads have the slope 1/2.
        -(2**exponent) → -0.5
    whole_numbers: You made whole numbers of the bias: its slopes are fractions.
        return bias → return np.trunc(bias)
    slopes_sorted: You sorted the slopes; those beyond a power of two come last.
        return bias → return bias[np.argsort(bias.sum((1, 2)), kind="stable")]
    first_of_twice: Of twice as many heads you take the first ones: take every other.
        (2 * (h - whole) + 1) / (2 * → (h - whole + 1) / (2 *
    one_slope: All your heads have the slope of the first.
        (h + 1) / whole → 1 / whole
        (2 * (h - whole) + 1) / (2 * whole) → 1 / whole
    # relative-biases#the-bias-ignores-the-cache
    first_on_first: You lined up the first query with the first key: it must be the last
        with the last.
        t + S - T - s → t - s
    first_on_first_cut: You lined up the first query with the first key, and cut what
        comes later at 0: the last query is at the last key.
        t + S - T - s → max(t - s, 0)
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
_FAR = np.array([[-300, -128, -127, 0], [8, 127, 128, 300]])


@Spec(
    Case("T5's decoder", (_APART, 32, 128, False)),
    Case("T5's encoder", (_APART, 32, 128, True)),
    Case("few buckets, odd", (_APART, 7, 20, False)),
    Case("an encoder, at 0 and far away", (_FAR, 32, 128, True)),
    wrong="""
    # relative-biases#the-formula
    other_sign: Distance is the query's position minus the key's.
        int(distance[at]) → -int(distance[at])
    linear: From half of the buckets on, they get wider and wider.
        apart ** (N - exact) >= exact**rest * furthest**j → apart >= exact + j
    doubling: Your wide buckets double; how fast they grow hangs on the furthest.
        apart ** (N - exact) >= exact**rest * furthest**j → apart >= exact * 2**j
    not_halved: Each direction has half of the buckets; you gave it all.
        buckets // 2 if both else buckets → buckets
    always_halved: You halved the buckets, though one direction has all of them.
        buckets // 2 if both else buckets → buckets // 2
    later_as_earlier: In a decoder later keys are in bucket 0.
        else max(behind, 0) → else abs(behind)
    earlier_in_second: The second half of the buckets is for later keys.
        both and behind < 0 → both and behind > 0
    furthest_is_128: You took 128 for the furthest, whatever comes in.
        N = buckets → furthest = 128; N = buckets
    buckets_are_32: You took 32 buckets, whatever comes in.
        N = buckets → buckets = 32; N = buckets
    not_cut: From the furthest on all distances share the last bucket.
        in range(N - exact) → in range(4 * N)
    zero_in_second: A token's distance from itself is 0: it is in bucket 0.
        both and behind < 0 → both and behind <= 0
    rounded_up: You rounded up, so that each wide bucket begins too early: round down.
        apart ** (N - exact) >= exact**rest * furthest**j →
            apart ** (N - exact) > exact ** (rest + 1) * furthest ** (j - 1)
            if j else apart >= exact
    no_exact_half: You took logarithms from 0 on: N // 2 buckets have one distance each.
        bucket[at] = min(apart, exact - 1) →
            bucket[at] = min(N - 1, np.log1p(apart) / np.log1p(furthest) * N)
        in range(N - exact) → in range(0)
    one_width: Your far buckets all have one width: they get wider and wider.
        apart ** (N - exact) >= exact**rest * furthest**j →
            (apart - exact) * (N - exact) >= j * (furthest - exact)
    later_below_0: You gave later keys numbers below 0: theirs is the second half.
        bucket[at] += N if both and behind < 0 else 0 →
            bucket[at] *= -1 if both and behind < 0 else 1
    cut_at_all: Each direction ends at its own last bucket; you cut at that of both.
        in range(N - exact) → in range(buckets - exact)
    logarithm_of_distance: The logarithm is that of distance / (N // 2), as is that of
        the furthest.
        apart ** (N - exact) >= exact**rest * furthest**j →
            apart >= exact and apart ** (N - exact) >= furthest**j
    # relative-biases#an-encoders-buckets-in-a-decoder
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
