"""Specs of what training needs: the paper's schedule, and the weight of LoRA."""

from math import sqrt  # noqa: F401 - for a mistake
from typing import SupportsFloat, cast

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


def _number(x: Array) -> Array:
    """Take what float() takes: a number, or an array of one."""
    one = cast("SupportsFloat", x.item()) if x.size == 1 else None
    return x if one is None else np.array(float(one))


@Spec(
    *(
        Case(f"step {step}, D = {D}, warmup {w}", (step, D, w))
        for step, D, w in (
            *((1, 512, 4000), (7, 512, 4000), (4000, 512, 4000), (100_000, 512, 4000)),
            *(
                (3, 6, 10),
                (10, 6, 10),
                (11, 6, 10),
                (50, 6, 10),
                (5, 768, 1),
                (1, 1, 1),
            ),
        )
    ),
    wrong="""
    # optimizer#the-formula
    larger: You took the larger of the two; it is the smaller.
        min( → max(
    no_width: You left out d_model^(-1/2).
        d_model**-0.5 → 1.0
    no_width_later: After the warm-up you left out d_model^(-1/2).
        d_model**-0.5 * min( → (d_model**-0.5 if step <= warmup else 1.0) * min(
    width_added: You added d_model^(-1/2); multiply by it.
        d_model**-0.5 * → d_model**-0.5 +
    minus_first: You wrote -√step for step^(-1/2): the minus belongs to the exponent.
        min(step**-0.5 → min(-(step**0.5)
    times_root: You multiplied by the root of d_model; divide by it.
        d_model**-0.5 → d_model**0.5
    width_no_root: You divided by d_model and not by its root.
        d_model**-0.5 → d_model**-1.0
    warmup_root: The exponent of warmup is -3/2; yours is -1/2.
        warmup**-1.5 → warmup**-0.5
    warmup_linear: The exponent of warmup is -3/2; yours is -1.
        warmup**-1.5 → warmup**-1.0
    warmup_square: The exponent of warmup is -3/2; yours is -2.
        warmup**-1.5 → warmup**-2.0
    warmup_two_thirds: The exponent of warmup is -3/2; yours is -2/3.
        warmup**-1.5 → warmup ** (-2 / 3)
    warmup_to_one: Before the peak it is step · warmup^(-3/2); yours is step / warmup.
        min(step**-0.5, step * warmup**-1.5) →
            (step / warmup if step <= warmup else step**-0.5)
    linear_later: After the warm-up your rate falls with 1 / step, not step^(-1/2).
        min(step**-0.5, step * warmup**-1.5) →
            (step * warmup**-1.5 if step <= warmup else 1 / step)
    from_the_warmup: After the warm-up you count steps from its end: count from 1.
        step**-0.5, → max(step - warmup, 1e-99) ** -0.5,
    rounded: You rounded the rate: return it as it is.
        return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)) →
            return round(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), 6)
    step_grows: You took the root of step; it is step^(-1/2).
        step**-0.5 → step**0.5
    step_linear: After the warm-up it falls with step^(-1/2); yours with 1 / step.
        step**-0.5 → step**-1.0
    no_warmup: Your first steps are too large: the warm-up is missing, or it is
        step · warmup^(3/2), not ^(-3/2).
        min(step**-0.5, step * warmup**-1.5) → step**-0.5
    no_decay: Your rate never falls: after the warm-up it goes with step^(-1/2).
        min(step**-0.5, step * warmup**-1.5) → step * warmup**-1.5
    constant_after: Your rate stays as it is after the warm-up; it falls.
        step**-0.5, → warmup**-0.5,
    exponent_swapped: Steps multiply after the warm-up, and take the root before it.
        min(step**-0.5, step * warmup**-1.5) → min(1 / step, step**-0.5 * warmup**-1.5)
    relative: You divided by the highest rate: that is a factor, not the rate.
        d_model**-0.5 * → warmup**0.5 *
    fixed_warmup: You always take 4000 steps of warm-up.
        warmup**-1.5 → 4000**-1.5
    fixed_width: You always take d_model = 512.
        d_model**-0.5 → 512**-0.5
    from_zero: You count steps from 0; the first is 1.
        step**-0.5, step * → max(step - 1, 1e-99) ** -0.5, (step - 1) *
    steep: Your rate falls exponentially: after the warm-up it goes with step^(-1/2).
        step**-0.5, → warmup**-0.5 * 2.718281828459045 ** (1 - step / warmup),
    to_zero: Your rate falls in a line: after the warm-up it goes with step^(-1/2).
        step**-0.5, → warmup**-0.5 * max(0.0, 2 - step / warmup),
    falls_by_step: After the warm-up your rate falls with warmup / step, not its root.
        step**-0.5, → warmup**0.5 / step,
    cut_off: Your rate is 0 after the warm-up: it falls with step^(-1/2).
        * min(step**-0.5, → * (step <= warmup) * min(step**-0.5,
    whole_numbers: You divided in whole numbers.
        step * warmup**-1.5) → step // warmup**1.5)
    all_whole_numbers: You rounded to whole numbers: the result is 0.
        d_model**-0.5 * → 0 *
    root_of_all: You took the root of the whole.
        d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) →
            (d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)) ** 0.5
    from_two: You count one step too many.
        step**-0.5, step * → (step + 1) ** -0.5, (step + 1) *
    summed: You added the two; take the smaller.
        min(step**-0.5, step * warmup**-1.5) → (step**-0.5 + step * warmup**-1.5)
    swapped: You exchanged d_model and warmup.
        d_model**-0.5 → warmup**-0.5
        warmup**-1.5 → d_model**-1.5
    """,
    properties=("state",),
    normal=_number,
)
def noam(step: int, d_model: int, warmup: int) -> float:
    """Compute the paper's equation 3."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def _matrices(out: int, width: int, r: int) -> tuple[Array, Array, Array]:
    return draw(out, width), draw(r, width, seed=1), draw(out, r, seed=2)


def _lengths(weight: Array) -> Array:
    """For a mistake: the length of each row, (O, 1)."""
    return np.asarray(np.sqrt((weight**2).sum(1, keepdims=True)))


@Spec(
    Case("rank 1", (*_matrices(2, 3, 1), 2.0)),
    Case("rank 2, square", (*_matrices(3, 3, 2), 5.0)),
    Case("rank 3, square throughout", (*_matrices(3, 3, 3), 5.0)),
    Case("rank 2, more out", (*_matrices(7, 5, 2), 16)),
    Case("rank 4, more in", (*_matrices(5, 8, 4), 0.5)),
    wrong="""
    # adapting#the-division-by-r-is-missing
    not_divided: You multiplied by α and did not divide by r.
        alpha / r → alpha
    root_of_rank: You divided by the root of r: that is rsLoRA.
        alpha / r → alpha / sqrt(r)
    # adapting#the-formula
    alpha_ignored: You left α out.
        alpha / r → 1 / r
    unscaled: You left α / r out.
        alpha / r → 1.0
    alpha_twice: You multiplied by α twice.
        alpha / → alpha * alpha /
    weight_times: You multiplied the weight by the product; add it.
        += alpha → *= alpha
    inverted: You multiplied by r / α; it is α / r.
        alpha / r → r / alpha
    rank_of_8: You always divide by 8: r is a.shape[0].
        alpha / r → alpha / 8
    rank_of_16: You always divide by 16: r is a.shape[0].
        alpha / r → alpha / 16
    rank_of_4: You always divide by 4: r is a.shape[0].
        alpha / r → alpha / 4
    alpha_of_16: You take α = 16, whatever comes in.
        alpha / r → 16 / r
    squared_rank: You divided by the square of r.
        alpha / r → alpha / r**2
    mean_of_weights: You took the mean of weight and product; add them.
        return merged → return (weight + alpha / r * change) / 2
    a_reshaped: You gave a another shape with reshape.
        b[o] @ a[:, i] → b[o] @ a.reshape(-1, r).T[:, i]
    b_reshaped: You gave b another shape with reshape.
        b[o] @ a[:, i] → b.reshape(r, -1).T[o] @ a[:, i]
    lengths_kept: You gave each row the length it had: that is DoRA.
        return merged → return merged * _lengths(weight) / _lengths(merged)
    columns_kept: You gave each column the length it had: that is DoRA.
        return merged → return merged * _lengths(weight.T).T / _lengths(merged.T).T
    both: You multiplied by α r; it is α / r.
        alpha / r → alpha * r
    twice: You scaled by α / r twice.
        alpha / r → (alpha / r) ** 2
    by_inputs: You divided by the number of inputs; r is a.shape[0].
        alpha / r → alpha / a.shape[1]
    by_outputs: You divided by the number of outputs; r is b.shape[1].
        alpha / r → alpha / len(b)
    whole_division: You divided α by r in whole numbers.
        alpha / r → alpha // r
    subtracted: You subtracted the product; add it.
        += alpha → -= alpha
    weight_shrunk: You multiplied the weight by 1 - α / r; it stays as it is.
        weight.astype(float) → weight * (1 - alpha / len(a))
    weight_grown: You multiplied the weight by 1 + the product; add the product.
        r * change → r * change * weight
    product_alone: You return the product alone; add it to the weight.
        weight.astype(float) → np.zeros(weight.shape)
    all_scaled: You scaled the sum of weight and product; only the product is scaled.
        weight.astype(float) → weight * (alpha / len(a))
    transposed_product: You added (b a)ᵀ; add b a.
        r * change → r * change.T
    a_b: You multiplied a by b; it is b a.
        b[o] @ a[:, i] → (a @ b)[o, i]
    elementwise: You multiplied entry by entry; b a is a product of matrices.
        b[o] @ a[:, i] → (b * a)[o, i]
    first_of_rank: You used the first of the r columns and rows alone.
        b[o] @ a[:, i] → b[o, 0] * a[0, i]
    a_ignored: You left out a.
        b[o] @ a[:, i] → sum(b[o])
    a_transposed: You took aᵀ where a stands.
        b[o] @ a[:, i] → b[o] @ a.T[:, i]
    b_transposed: You took bᵀ where b stands.
        b[o] @ a[:, i] → b.T[o] @ a[:, i]
    merged_twice: You added the product twice.
        return merged → return merged + alpha / r * change
    weight_ignored: You return the weight as it came.
        += alpha / r → += 0
    """,
    name="lora",
)
def lora_weight(weight: Array, a: Array, b: Array, alpha: float) -> Array:
    """Add the product entry by entry."""
    merged, r, change = weight.astype(float), len(a), np.zeros(weight.shape)
    for o, i in np.ndindex(*weight.shape):
        change[o, i] = b[o] @ a[:, i]
    merged += alpha / r * change
    return merged
