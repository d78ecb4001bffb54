"""Specs of norms: over the last axis, whatever comes before it."""

from math import sqrt
from typing import Any

import numpy as np

from tformer.check.spec import Case, Spec, mistakes

Array = np.ndarray
ALL = ("float32", "bfloat16", "float16")


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> Array:
    """Normalise one vector at a time."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        D = x.shape[-1]
        mean = sum(x[at]) / D
        variance = sum((number - mean) ** 2 for number in x[at]) / D
        for d in range(D):
            shift = 0.0 if bias is None else bias[d]
            output[at][d] = (x[at][d] - mean) / sqrt(variance + eps) * weight[d] + shift
    return output


def rms_norm(x: Array, weight: Array, eps: float, *, plus_one: bool = False) -> Array:
    """Normalise one vector at a time."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        root = sqrt(sum(number**2 for number in x[at]) / x.shape[-1] + eps)
        for d, number in enumerate(x[at]):
            output[at][d] = number / root * (weight[d] + 1 if plus_one else weight[d])
    return output


def _normed(
    x: Array,
    weight: Array,
    bias: Array | None,
    eps: float,
    axes: int | tuple[int, ...] = -1,
    ddof: int = 0,
    outside: bool = False,
) -> Array:
    mean = x.mean(axes, keepdims=True)
    variance = x.var(axes, ddof=ddof, keepdims=True)
    root = np.sqrt(variance) + eps if outside else np.sqrt(variance + eps)
    return (x - mean) / root * weight + (0.0 if bias is None else bias)


def _no_root(x: Array, weight: Array, bias: Array | None, eps: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / (variance + eps) * weight + (0.0 if bias is None else bias)


def _squares(x: Array) -> Array:
    return (x**2).mean(-1, keepdims=True)


def _float32_inside(x: Any, weight: Any, eps: float) -> Any:
    """In half precision the squares overflow, or lose digits."""
    return x * (x * x).mean(-1, True).add(eps).rsqrt() * weight


def _in_place(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    x -= x.mean(-1, True)
    output = x / (x * x).mean(-1, True).add(eps).sqrt() * weight
    return output if bias is None else output + bias


def _draw(*shape: int) -> Array:
    return np.random.default_rng([*shape]).normal(size=shape)


X, GAIN, SHIFT = 3 + 2 * _draw(2, 3, 7), _draw(7), _draw(1, 7)[0]
LAYER_NORM = Spec(
    "layer_norm",
    "layer_norm(x, weight, bias, eps)",
    (
        Case("one vector", (np.array([1.0, 2.0, 4.0]), _draw(3), _draw(1, 3)[0], 1e-5)),
        Case("three axes", (X, GAIN, SHIFT, 1e-5)),
        Case("without a bias", (X, GAIN, None, 1e-5)),
        Case("four axes, a large ε", (_draw(2, 3, 2, 5), GAIN[:5], SHIFT[:5], 0.5)),
        Case("a constant vector", (np.full((1, 7), 2.0), GAIN, SHIFT, 1e-3)),
        Case("numbers in the hundreds", (300 * _draw(2, 7), GAIN, SHIFT, 1e-5)),
    ),
    layer_norm,
    (
        *mistakes(
            "feed-forward#unbiased-variance-and-ε-outside-the-root",
            {
                "unbiased: You divided the squares by D - 1 and not by D.": (
                    lambda x, weight, bias, eps: _normed(x, weight, bias, eps, ddof=1)
                ),
                "eps_outside: You added ε to the root; it stands below the root.": (
                    lambda x, weight, bias, eps: _normed(
                        x, weight, bias, eps, outside=True
                    )
                ),
            },
        ),
        *mistakes(
            "feed-forward#the-formula",
            {
                "no_root: You divided by the variance and not by its root.": _no_root,
                "gain_ignored: You left out the gain.": (
                    lambda x, weight, bias, eps: layer_norm(x, weight**0, bias, eps)
                ),
                "bias_ignored: You left out the bias.": (
                    lambda x, weight, bias, eps: layer_norm(x, weight, 0 * weight, eps)
                ),
                "eps_ignored: You left ε out: a constant vector divides by 0.": (
                    lambda x, weight, bias, eps: _normed(x, weight, bias, 0.0)
                ),
                "fixed_eps: You always take ε = 1e-5.": (
                    lambda x, weight, bias, eps: layer_norm(x, weight, bias, 1e-5)
                ),
                "not_centred: You did not subtract the mean.": (
                    lambda x, weight, bias, eps: (
                        rms_norm(x, weight, eps) + (0.0 if bias is None else bias)
                    )
                ),
            },
        ),
        *mistakes(
            "feed-forward#a-norm-over-positions-too",
            {
                "all_axes: You took mean and variance over all numbers.": (
                    lambda x, weight, bias, eps: _normed(
                        x, weight, bias, eps, tuple(range(x.ndim))
                    )
                ),
                "first_axis: You took mean and variance over the first axis.": (
                    lambda x, weight, bias, eps: _normed(x, weight, bias, eps, 0)
                ),
            },
        ),
        *mistakes(
            "feed-forward#in-place",
            {"in_place: You changed x itself: `-=` writes into it.": _in_place},
            shows="inputs",
        ),
    ),
    dtypes=ALL,
)

RMS_NORM = Spec(
    "rms_norm",
    "rms_norm(x, weight, eps)",
    (
        Case("one vector", (np.array([3.0, 4.0]), np.array([1.0, 0.5]), 1e-6)),
        Case("three axes", (X, GAIN, 1e-6)),
        Case("four axes, a large ε", (_draw(2, 3, 2, 5), _draw(5), 0.5)),
        Case("zeros", (np.zeros((1, 3)), _draw(3), 1e-6)),
        Case("numbers in the hundreds", (300 * _draw(2, 7), GAIN, 1e-6)),
        Case("1 + w", (X, GAIN, 1e-6), {"plus_one": True}),
    ),
    rms_norm,
    (
        *mistakes(
            "block-today#the-formula",
            {
                "centred: You subtracted the mean: that is layer normalisation.": (
                    lambda x, weight, eps: layer_norm(x, weight, None, eps)
                ),
                "sum: You took the sum of the squares and not their mean.": (
                    lambda x, weight, eps: (
                        x / np.sqrt(_squares(x) * x.shape[-1] + eps) * weight
                    )
                ),
                "no_root: You divided by the mean square and not by its root.": (
                    lambda x, weight, eps: x / (_squares(x) + eps) * weight
                ),
                "eps_outside: You added ε to the root; it stands below the root.": (
                    lambda x, weight, eps: x / (np.sqrt(_squares(x)) + eps) * weight
                ),
                "gain_ignored: You left out the gain.": (
                    lambda x, weight, eps: rms_norm(x, weight**0, eps)
                ),
                "all_axes: You took the mean over all numbers.": (
                    lambda x, weight, eps: x / np.sqrt((x**2).mean() + eps) * weight
                ),
                "fixed_eps: You always take ε = 1e-6.": (
                    lambda x, weight, eps: rms_norm(x, weight, 1e-6)
                ),
            },
        ),
        *mistakes(
            "block-today#the-1-of-1-w",
            {
                "one_left_out: You multiplied by w and not by 1 + w.": (
                    lambda x, weight, eps, *, plus_one=False: rms_norm(x, weight, eps)
                ),
            },
        ),
        *mistakes(
            "block-today#the-formula",
            {
                "half_inside: You square in half precision: 256² is infinite there.": (
                    _float32_inside
                )
            },
            shows="precision",
        ),
    ),
    dtypes=ALL,
)
