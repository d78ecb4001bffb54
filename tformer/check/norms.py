"""Specs of norms: over the last axis, whatever comes before it."""

from math import sqrt

import numpy as np

from tformer.check import normalising
from tformer.check.spec import Array, Case, Spec, draw


def _first(x: Array, eps: float) -> Array:
    """For a mistake: normalise along the wrong axis."""
    return np.asarray((x - x.mean(0)) / np.sqrt(x.var(0) + eps))


ALL = ("float32", "bfloat16", "float16")
_X, _GAIN, _SHIFT = 3 + 2 * draw(2, 3, 7), draw(7), draw(7, seed=1)
_OTHER = 1 - draw(2, 3, 7, seed=5)
# Far from 0; in bfloat16 without what is after the point: those sums are exact.
_FAR = 4096 + np.array([[0.3, -0.2, 64.1, -32.4, -31.8, 32.3, -16.2, -15.7]])
_FOUR_AXES = draw(2, 3, 2, 5), draw(5)


@Spec(
    Case("one vector", (np.array([1.0, 2.0, 4.0]), draw(3), draw(3, seed=1), 1e-5)),
    Case("three axes", (_X, _GAIN, _SHIFT, 1e-5)),
    Case("without a bias", (_X, _GAIN, None, 1e-5), exercise=False),
    Case("four axes, a large ε", (*_FOUR_AXES, draw(5, seed=1), 0.5)),
    Case("a constant vector", (np.full((1, 7), 2.0), _GAIN, _SHIFT, 0.25)),
    Case("three axes, other numbers", (_OTHER, _GAIN, _SHIFT, 1e-5)),
    Case("far from 0", (_FAR, draw(8), draw(8, seed=1), 1e-5)),
    Case("numbers in the hundreds", (300 * draw(2, 7), _GAIN, _SHIFT, 1e-5)),
    wrong="""
    # residuals#unbiased-variance-and-outside-the-root
    unbiased: You divided the squares by D - 1 and not by D.
        ** 2) / D → ** 2) / (D - 1)
    eps_outside: You added ε to the root; it stands below the root.
        np.sqrt(variance + eps) → (np.sqrt(variance) + eps)
    # residuals#the-formula
    eps_to_result: You added ε to what is divided; it stands below the root.
        / np.sqrt(variance + eps) → / np.sqrt(variance) + eps
    eps_to_sum: You added ε before you divided by D; it is added to the mean.
        variance + eps → variance + eps / D
    eps_squared: You squared ε; it is added as it is.
        variance + eps → variance + eps**2
    eps_subtracted: You subtracted ε.
        variance + eps → variance - eps
    eps_at_least: You took ε as a lower bound; it is added.
        variance + eps → max(variance, eps)
    no_root: You divided by the variance and not by its root.
        np.sqrt(variance + eps) → (variance + eps)
    not_divided: You subtracted the mean, and did not divide by the deviation.
        / np.sqrt(variance + eps) → * 1.0
    multiplied: You multiplied by the root of the variance; divide by it.
        / np.sqrt(variance + eps) → * np.sqrt(variance + eps)
    gain_ignored: You left out the gain.
        normalised * weight → normalised
    gain_plus_one: You multiplied by 1 + weight: here the weight is the gain itself.
        normalised * weight → normalised * (1 + weight)
    gain_divides: You divided by the gain.
        normalised * weight → normalised / weight
    bias_scaled: You added the bias before you multiplied by the gain.
        + (0.0 if → + weight * (0.0 if
    bias_subtracted: You subtracted the bias.
        + (0.0 if → - (0.0 if
    gain_and_bias_swapped: You multiplied by the bias and added the weight.
        normalised * weight → normalised * bias
        is None else bias → is None else weight
    root_mean_square: You divided by the root of the mean square: that is not centred.
        np.sum((x[at] - mean) ** 2) → np.sum(x[at] ** 2)
    mean_stays: You took the variance around the mean, but divided x as it came.
        (x[at] - mean) / np.sqrt → x[at] / np.sqrt
    absolute: You divided by the mean of |x - mean|, not by the root of squares.
        np.sqrt(variance + eps) → (np.mean(np.abs(x[at] - mean)) + eps)
    median: You subtracted the median.
        np.sum(x[at]) / D → np.median(x[at])
    length: You divided by the length of the vector: divide the squares' sum by D.
        (x[at] - mean) ** 2) / D → (x[at] - mean) ** 2)
    bias_ignored: You left out the bias.
        (0.0 if bias is None else bias) → 0.0
    eps_ignored: You left ε out: a constant vector divides by 0.
        variance + eps → variance
    fixed_eps: You take an ε of your own, not the one that comes in.
        variance + eps → variance + 1e-5
    not_centred: You did not subtract the mean.
        np.sum(x[at]) / D → 0.0
    # residuals#a-norm-over-positions-too
    all_axes: You took mean and variance over all numbers.
        np.sum(x[at]) / D → np.mean(x)
        np.sum((x[at] - mean) ** 2) / D → np.mean((x - mean) ** 2)
    first_axis: You normalised along the first axis; it is the last.
        output, D = np.zeros(x.shape), x.shape[-1] → output, D = _first(x, eps), 0
        mean = np.sum(x[at]) / D → normalised = output[at]
        variance = np.sum((x[at] - mean) ** 2) / D →
        normalised = (x[at] - mean) / np.sqrt(variance + eps) →
    over_tokens: You normalised along the axis before the last: that is over tokens.
        np.sum(x[at]) / D → np.mean(x, -2)[at[:-1]]
        np.sum((x[at] - mean) ** 2) / D → np.var(x, -2)[at[:-1]]
    second_axis: You normalised along axis 1, the second; it is the last.
        output, D = np.zeros(x.shape), x.shape[-1] →
            output, D = np.zeros(x.shape), x.shape[1]
        np.sum(x[at]) / D → np.broadcast_to(np.mean(x, 1, keepdims=True), x.shape)[at]
        np.sum((x[at] - mean) ** 2) / D →
            np.broadcast_to(np.var(x, 1, keepdims=True), x.shape)[at]
    all_but_first: You took mean and variance over all axes but the first.
        np.sum(x[at]) / D → np.mean(x[at[:1]])
        np.sum((x[at] - mean) ** 2) / D → np.var(x[at[:1]])
    last_two: You took mean and variance over the last two axes.
        np.sum(x[at]) / D → np.mean(x[at[:-1]])
        np.sum((x[at] - mean) ** 2) / D → np.mean((x[at[:-1]] - mean) ** 2)
    """,
    also=(*normalising.LAYER_NORM_IN_TORCH, *normalising.LAYER_NORM_AT_ONCE),
    dtypes=ALL,
)
def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> Array:
    """Normalise one vector at a time."""
    output, D = np.zeros(x.shape), x.shape[-1]
    for at in np.ndindex(x.shape[:-1]):
        mean = np.sum(x[at]) / D
        variance = np.sum((x[at] - mean) ** 2) / D
        normalised = (x[at] - mean) / np.sqrt(variance + eps)
        output[at] = normalised * weight + (0.0 if bias is None else bias)
    return output


@Spec(
    Case("one vector", (np.array([3.0, 4.0]), np.array([1.0, 0.5]), 1e-6)),
    Case("three axes", (_X, _GAIN, 1e-6)),
    Case("four axes, a large ε", (*_FOUR_AXES, 0.5)),
    Case("zeros", (np.zeros((1, 3)), draw(3), 1e-6)),
    Case("ε = 10", (draw(2, 5), draw(5), 10.0)),
    Case("three axes, other numbers", (_OTHER, _GAIN, 1e-6)),
    Case("numbers in the hundreds", (300 * draw(2, 7), _GAIN, 1e-6)),
    Case("1 + w", (_X, _GAIN, 1e-6), {"plus_one": True}),
    wrong="""
    # block-today#the-formula
    centred: You subtracted the mean: that is layer normalisation.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.var(x[at])
        x[at] / sqrt → (x[at] - np.mean(x[at])) / sqrt
    centred_square: You divided by the standard deviation: take the mean square of x.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.var(x[at])
    sum: You took the sum of the squares and not their mean.
        / x.shape[-1] →
    unbiased: You divided the squares by D - 1 and not by D.
        / x.shape[-1] → / max(x.shape[-1] - 1, 1)
    over_tokens: You normalised along the axis before the last: that is over tokens.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.mean(x**2, -2)[at[:-1]]
        sqrt(mean_square + eps) → np.sqrt(mean_square + eps)
    second_axis: You normalised along axis 1, the second; it is the last.
        sum(number**2 for number in x[at]) / x.shape[-1] →
            np.broadcast_to(np.mean(x**2, 1, keepdims=True), x.shape)[at]
        sqrt(mean_square + eps) → np.sqrt(mean_square + eps)
    square_of_mean: You squared the mean; take the mean of the squares.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.mean(x[at]) ** 2
    unbiased_deviation: You divided by the standard deviation with D - 1: take the mean
        square of x.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.var(x[at], ddof=1)
    eps_below_length: You took ε as the least length a vector can have; it is added to
        the mean square.
        sqrt(mean_square + eps) → max(sqrt(mean_square), eps / sqrt(x.shape[-1]))
    mean_of_roots: You took the mean of |x|, not the root of the mean square.
        sqrt(mean_square + eps) → (np.mean(np.abs(x[at])) + eps)
    first_half: You took the mean square of the first half of the numbers.
        in x[at]) / x.shape[-1] → in x[at][: x.shape[-1] // 2]) / (x.shape[-1] // 2)
    not_divided: You did not divide by the root of the mean square.
        / sqrt(mean_square + eps) → * 1.0
    multiplied: You multiplied by the root of the mean square; divide by it.
        / sqrt(mean_square + eps) → * sqrt(mean_square + eps)
    eps_squared: You squared ε; it is added as it is.
        mean_square + eps → mean_square + eps**2
    eps_to_sum: You added ε before you divided by D; it is added to the mean.
        mean_square + eps → mean_square + eps / x.shape[-1]
    eps_times_width: You added D · ε: ε is added to the mean as it is.
        mean_square + eps → mean_square + eps * x.shape[-1]
    gain_added: You added the gain; multiply by it.
        + eps) * gain → + eps) + gain
    first_gain: You multiplied all by the first gain: each number has its own.
        gain = 1 + weight if plus_one else weight →
            gain = 1 + weight if plus_one else weight[0]
    largest: You divided by the largest number: take the root of the mean square.
        sqrt(mean_square + eps) → (np.abs(x[at]).max() + eps)
    eps_subtracted: You subtracted ε.
        sqrt(mean_square + eps) → np.sqrt(mean_square - eps)
    eps_ignored: You left ε out: zeros divide by 0.
        sqrt(mean_square + eps) → np.sqrt(mean_square)
    eps_at_least: You took ε as a lower bound; it is added.
        mean_square + eps → max(mean_square, eps)
    gain_first: You multiplied by the gain before you took the mean square.
        for number in x[at]) → for number in x[at] * weight)
    gain_squared: You multiplied by the gain twice.
        + eps) * gain → + eps) * gain * gain
    gain_divides: You divided by the gain.
        + eps) * gain → + eps) / gain
    no_root: You divided by the mean square and not by its root.
        sqrt(mean_square + eps) → (mean_square + eps)
    eps_outside: You added ε to the root; it stands below the root.
        sqrt(mean_square + eps) → (sqrt(mean_square) + eps)
    gain_ignored: You left out the gain.
        + eps) * gain → + eps)
    all_axes: You took the mean over all numbers.
        sum(number**2 for number in x[at]) / x.shape[-1] → np.mean(x**2)
    fixed_eps: You take an ε of your own, not the one that comes in.
        mean_square + eps → mean_square + 1e-6
    # block-today#the-1-of-1-w
    one_added: You multiplied by 1 + w: here the weight is the gain itself.
        if plus_one else weight → if not plus_one else weight
    one_left_out: You multiplied by w and not by 1 + w.
        1 + weight if plus_one else weight → weight
    """,
    also=(*normalising.RMS_NORM_IN_TORCH, *normalising.RMS_NORM_AT_ONCE),
    dtypes=ALL,
)
def rms_norm(x: Array, weight: Array, eps: float, *, plus_one: bool = False) -> Array:
    """Normalise one vector at a time."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        mean_square = sum(number**2 for number in x[at]) / x.shape[-1]
        gain = 1 + weight if plus_one else weight
        output[at] = x[at] / sqrt(mean_square + eps) * gain
    return output
