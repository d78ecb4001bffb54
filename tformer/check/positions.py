"""Specs of positions: sinusoids, and a learned table."""

from math import cos, sin

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


@Spec(
    Case("two positions", (2, 2)),
    Case("seven positions", (7, 12)),
    Case("odd width", (5, 7)),
    Case("nine positions", (9, 12)),
    Case("from position 3", (4, 6), {"start": 3}),
    wrong="""
    # positions#the-formula
    double_exponent: The exponent is 2i/D in the columns 2i and 2i + 1; you doubled the
        column.
        (column - column % 2) → 2 * column
    double_exponent_of_pair: The exponent of pair i is 2i/D; yours is 4i/D.
        (column - column % 2) → 2 * (column - column % 2)
    logarithm_of_ten: You took log10 where exp wants the natural logarithm.
        10000**exponent → 54.598150033144236**exponent
    by_column: Sine and cosine of a pair share one exponent.
        (column - column % 2) → column
    half_exponent: The exponent of pair i is 2i/D; yours is i/D.
        (column - column % 2) / → (column // 2) /
    half_width: The exponent of pair i is 2i/D; yours is 2i over half of D.
        / d_model → / ((d_model + 1) // 2)
    width_of_sines: You divided by an even width in place of D.
        / d_model → / (d_model + d_model % 2)
    to_the_end: Your exponents run from 0 to 1: they are 2i/D, which stays below 1.
        (column - column % 2) / d_model → (column // 2) / max(1, (d_model + 1) // 2 - 1)
    growing: You multiply by 10000^(2i/D): divide by it.
        (start + row) / 10000 → (start + row) * 10000
    cosine_later: Sine and cosine of a pair share one exponent; your cosine is one on.
        (column - column % 2) → (column + column % 2)
    one_frequency: You left the exponent out.
        10000**exponent → 10000
    no_exponent: Your exponent is 0: 2i/D is no whole number, so // makes it 0.
        10000**exponent → 1.0
    not_divided: You left out the division by D: the exponent is 2i/D.
        / d_model → / 1
    base_ten_times: The base is 10000; yours is 100000.
        10000** → 100000**
    other_base: The base is 10000; yours is 1000.
        10000** → 1000**
    # positions#the-layout
    halves: Sines and cosines take turns; you put them in halves.
        return table → return np.concatenate((table[:, 0::2], table[:, 1::2]), 1)
    halves_to_the_end: You put sines and cosines in halves, with exponents from 0 to 1.
        (column - column % 2) / d_model → (column // 2) / max(1, (d_model + 1) // 2 - 1)
        return table → return np.concatenate((table[:, 0::2], table[:, 1::2]), 1)
    swapped: Sines stand in even columns, cosines in odd ones.
        cos(angle) if column % 2 else sin(angle) → (sin, cos)[1 - column % 2](angle)
    # positions#the-formula
    from_one: Positions begin at 0; yours begin at 1.
        (start + row) → (start + row + 1)
    all_sines: You took the sine everywhere: odd columns are cosines.
        cos(angle) if column % 2 else sin(angle) → sin(angle)
    all_cosines: You took the cosine everywhere: even columns are sines.
        cos(angle) if column % 2 else sin(angle) → cos(angle)
    angles: You return the angles; take sine and cosine of them.
        cos(angle) if column % 2 else sin(angle) → angle
    turns: You multiplied by 2π: the angle is position / 10000^(2i/D).
        = (start + row) → = 6.283185307179586 * (start + row)
    degrees: You took the angles for degrees.
        = (start + row) → = 0.017453292519943295 * (start + row)
    into_degrees: You made degrees of the angles: sin and cos take radians.
        = (start + row) → = 57.29577951308232 * (start + row)
    minus_sine: Your sines have the other sign.
        else sin(angle) → else -sin(angle)
    minus_cosine: Your cosines have the other sign.
        cos(angle) if → -cos(angle) if
    times_root: You multiplied by √D: that is for embeddings.
        return table → return table * d_model**0.5
    over_root: You divided by √D.
        return table → return table / d_model**0.5
    relative: You divided the positions by the length.
        (start + row) / → (start + row) / length /
    cosine_at_the_end: Of an odd width the last column is a sine; yours is a cosine.
        column % 2 else → (column % 2 or column == d_model - 1) else
    no_last_column: Of an odd width the last column is a sine; yours is 0.
        return table → return table * (np.arange(d_model) < d_model - d_model % 2)
    odd_width_raises: Your code fails for an odd width: it has a cosine less than sines.
        table = np.zeros((length, d_model)) → table = np.zeros((length, d_model));
            table[:, 1::2] = np.zeros((length, (d_model + 1) // 2))
    last_column_cut: Of an odd width you have a column too few.
        return table → return table[:, : d_model - d_model % 2]
    last_column_more: Of an odd width you have a column too many.
        np.zeros((length, d_model)) → np.zeros((length, d_model + d_model % 2))
        np.ndindex(length, d_model) → np.ndindex(table.shape)
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
