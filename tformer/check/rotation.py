"""Specs of rotation by position, and of the layers that rotate."""

from math import cos, sin

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw

_X = draw(2, 3, 5, 6)
_LATER = np.arange(2, 5), 100.0


def _short(x: float) -> float:
    """For a mistake: the nearest number that bfloat16 has."""
    bits = int(np.float32(x).view(np.uint32))
    kept = np.uint32((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)
    return float(kept.view(np.float32))


@Spec(
    Case("two pairs", (draw(1, 1, 2, 4), np.array([0, 1]), 1e4)),
    Case("five positions", (_X, np.arange(5), 1e4)),
    Case("from position 7, another base", (_X, np.arange(7, 12), 500.0)),
    Case("a small base", (_X, np.arange(5), 10.0)),
    Case("positions in any order", (_X, np.array([4, 1, 1, 40, 0]), 1e4)),
    Case("far positions", (draw(1, 1, 4, 6), np.array([257, 515, 259, 391]), 1e4)),
    Case("in pairs", (_X, np.arange(5), 1e4), {"layout": "pairs"}),
    Case("four columns of six", (_X, np.arange(5), 1e4), {"part": 4}),
    Case(
        "a half, in pairs", (draw(1, 2, 3, 8), *_LATER), {"part": 4, "layout": "pairs"}
    ),
    wrong="""
    # rotary#the-formula
    backwards: You rotate backwards: (a, b) becomes (a cos - b sin, a sin + b cos).
        float(positions[t] → float(-positions[t]
    positions_ignored: You count from 0 whatever `positions` says.
        float(positions[t] → float(t
    along_heads: You rotate by the number of the head: positions go along T.
        float(positions[t] → float(h
    half_exponent: The exponent is -2i/Dh; yours is -i/Dh.
        -2 * i / Dh → -i / Dh
    growing: Your frequencies grow: the exponent is -2i/Dh, not 2i/Dh.
        -2 * i / Dh → 2 * i / Dh
    double_exponent: The exponent is -2i/Dh for pair i; you doubled it once more.
        -2 * i / Dh → -4 * i / Dh
    to_the_end: Your exponents run from 0 to 1: they are 2i/Dh, which stays below 1.
        -2 * i / Dh → -i / max(Dh // 2 - 1, 1)
    not_divided: You left out the division by Dh: the exponent is -2i/Dh.
        -2 * i / Dh → -2 * i
    base_alone: You divided by the base in every pair: the exponent is -2i/Dh.
        -2 * i / Dh → -1.0
    one_too_slow: Your frequencies begin at i = 1: the first pair turns by 1 per token.
        -2 * i / Dh → -2 * (i + 1) / Dh
    one_frequency: All your pairs turn at one speed.
        -2 * i / Dh → 0
    from_one: You add 1 to the positions.
        positions[t] * → (positions[t] + 1) *
    first_position_on: You count on from the first position: each token has its own.
        positions[t] * → (positions[0] + t) *
    from_first: You subtracted the first position: take positions as they come.
        positions[t] * → (positions[t] - positions[0]) *
    degrees: You took the angles for degrees.
        positions[t] * → np.pi / 180 * positions[t] *
    half_turns: You multiplied by π: there is none.
        positions[t] * → np.pi * positions[t] *
    twice: You rotated twice.
        positions[t] * → 2 * positions[t] *
    slow_first: Your frequencies stand in the other order: the first is the fastest.
        -2 * i / Dh → -2 * (Dh // 2 - 1 - i) / Dh
    last_token_left: Your last token is not rotated.
        positions[t] * → (t < len(positions) - 1) * positions[t] *
    cosine_ignored: You added the rotated sine to x, and left the cosine out.
        a * cos(one) → a
        c * cos(other) → c
    turns: You took the angles for whole turns: there is no 2π.
        positions[t] * → 2 * np.pi * positions[t] *
    no_minus: The first of a pair is a cos - b sin; you added.
        - c * sin(one) → + c * sin(one)
    both_minus: You subtracted in both: the second of a pair is a sin + b cos.
        + c * cos(other) → - c * cos(other)
    second_minus: You subtracted in the second of a pair: it is a sin + b cos.
        = a * sin(other) + → = -a * sin(other) +
    in_bfloat16: You computed the angles in bfloat16: far positions have the same ones.
        float(positions[t] * base ** (-2 * i / Dh)) →
            _short(_short(positions[t]) * _short(base ** (-2 * i / Dh)))
        a * cos(one) - c * sin(one) → a * _short(cos(one)) - c * _short(sin(one))
        a * sin(other) + c * cos(other) →
            a * _short(sin(other)) + c * _short(cos(other))
    sin_and_cos_swapped: You exchanged sine and cosine.
        a * cos(one) - c * sin(one) → a * sin(one) - c * cos(one)
        a * sin(other) + c * cos(other) → a * cos(other) + c * sin(other)
    cosine_alone: You multiplied by the cosine, and left the sine out.
        - c * sin(one) →
        a * sin(other) + →
    halves_swapped: You put the halves back in the other order.
        output[b, h, t, first] = → output[b, h, t, second] =
        output[b, h, t, second] = a * sin → output[b, h, t, first] = a * sin
    half_rotated: You rotated half of the pairs: all are rotated.
        positions[t] * → (i < Dh // 4 or Dh < 4) * positions[t] *
    last_pair_left: Your last pair is not rotated.
        positions[t] * → (i < Dh // 2 - 1) * positions[t] *
    own_half: You multiplied each half's sine with itself: it goes with the other half.
        - c * sin(one) → - a * sin(one)
        a * sin(other) → c * sin(other)
    first_half_alone: You rotated the first half; the second stays as it came.
        a * sin(other) + c * cos(other) → c
    second_half_alone: You rotated the second half; the first stays as it came.
        a * cos(one) - c * sin(one) → a
    overwritten: You wrote over the first half before the second was computed from it.
        = a * sin(other) → = output[b, h, t, first] * sin(other)
    overwritten_second: You wrote over the second half before the first was computed.
        - c * sin(one) → - (a * sin(one) + c * cos(one)) * sin(one)
    positions_sorted: You sorted the positions: token t has positions[t].
        positions[t] * → np.sort(positions)[t] *
    added: You added x to what is rotated.
        return output → return output + x
    angles_added: You added sines and cosines to x: rotate it.
        a * cos(one) - c * sin(one) → a + sin(one)
        a * sin(other) + c * cos(other) → c + cos(other)
    not_rotated: You return x as it came.
        return output → return x.copy()
    # rotary#the-layouts-are-mixed
    pairs: You rotate columns 2i and 2i + 1 together; here a pair is i and i + Dh/2.
        layout == "pairs" → layout != "pears"
    pairs_with_angles_of_halves: You rotate 2i and 2i + 1, by a table of angles that is
        laid out in halves: a pair is i and i + Dh/2.
        layout == "pairs" → layout != "pears"
        angle(i), angle(i) → angle(first % (Dh // 2)), angle(second % (Dh // 2))
    angles_of_pairs: Your table of angles is laid out in pairs; here it is in halves.
        angle(i), angle(i) → angle(first // 2), angle(second // 2)
    pairs_put_in_halves: You rotate 2i with 2i + 1, and put the results in halves.
        x[b, h, t, first] → x[b, h, t, 2 * i]
        x[b, h, t, second] → x[b, h, t, 2 * i + 1]
    halves_put_in_pairs: You rotate i with i + Dh/2, and put the results side by side.
        output[b, h, t, first] = → output[b, h, t, 2 * i] =
        output[b, h, t, second] = → output[b, h, t, 2 * i + 1] =
    far_ends: You rotate column i with Dh - 1 - i; a pair is i and i + Dh/2.
        (i, i + Dh // 2) → (i, Dh - 1 - i)
    # rotary#the-base-of-another-model
    fixed_base: You take the base 10000 whatever comes in.
        base ** → 1e4 **
    # rotary#part-of-a-head
    whole_rotated: You rotated the whole head: the first numbers of it turn.
        Dh = part or x.shape[-1] → Dh = x.shape[-1]
    last_part_rotated: You rotated the last numbers of a head: it is the first ones.
        (2 * i, 2 * i + 1) if →
            (2 * i + x.shape[-1] - Dh, 2 * i + 1 + x.shape[-1] - Dh) if
        else (i, i + Dh // 2) → else (x.shape[-1] - Dh + i, x.shape[-1] - Dh // 2 + i)
    rest_dropped: You put zeros for the numbers that do not turn: they stay.
        output = x.copy() → output = np.zeros(x.shape)
    halves_of_whole: You paired column i with i + Dh/2 of the whole head: a pair lies
        within the part.
        else (i, i + Dh // 2) → else (i, i + x.shape[-1] // 2)
    # rotary#the-frequencies-of-the-whole-for-a-part
    frequencies_of_whole: You divided the exponents by the width of the head: it is
        that of the part.
        (-2 * i / Dh) → (-2 * i / x.shape[-1])
    """,
)
def rotary(
    x: Array,
    positions: Array,
    base: float,
    *,
    layout: str = "halves",
    part: int | None = None,
) -> Array:
    """Rotate pair by pair, of a part of the head if one is given."""
    output = x.copy()
    Dh = part or x.shape[-1]  # so many numbers are rotated, the first of a head

    def angle(i: int) -> float:
        return float(positions[t] * base ** (-2 * i / Dh))

    for b, h, t, i in np.ndindex(*x.shape[:3], Dh // 2):
        first, second = (2 * i, 2 * i + 1) if layout == "pairs" else (i, i + Dh // 2)
        a, c = x[b, h, t, first], x[b, h, t, second]
        one, other = angle(i), angle(i)
        output[b, h, t, first] = a * cos(one) - c * sin(one)
        output[b, h, t, second] = a * sin(other) + c * cos(other)
    return output


@Spec(
    Case("each fourth has none", (8, 4)),
    Case("each third", (7, 3)),
    Case("each second", (5, 2)),
    Case("a list", (5, 4), {"given": [1, 0, 0, 1, 1]}),
    wrong="""
    # long-context#nope
    counted_from_zero: You counted from layer 0: the last of each so many has none.
        (layer + 1) % every → layer % every
    rotated_alone: You rotated in each so-many-th layer: it is the others that rotate.
        (layer + 1) % every > 0 → (layer + 1) % every == 0
    all_rotate: You rotated in every layer.
        (layer + 1) % every > 0 → every > 0
    last_alone: You left the rotation out in the last layer alone.
        (layer + 1) % every > 0 → layer + 1 < layers
    first_layers: You left the rotation out in the first layers, one in so many.
        (layer + 1) % every > 0 → layer >= layers // every
    list_ignored: You counted, though the config lists the layers.
        if given is not None: → if given is layers:
    # long-context#a-list-read-the-other-way-round
    other_way_round: You took a 1 for no positions: it says that the layer rotates.
        given[layer] > 0 → given[layer] == 0
    """,
    properties=("state", "inputs"),
)
def rotated_layers(layers: int, every: int, *, given: list[int] | None = None) -> Array:
    """Say of each layer whether it rotates, or has no positions."""
    rotates = np.zeros(layers, bool)
    for layer in range(layers):
        rotates[layer] = (layer + 1) % every > 0
        if given is not None:
            rotates[layer] = given[layer] > 0
    return rotates
