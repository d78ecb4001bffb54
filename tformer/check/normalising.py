"""Norms in other code, for mistakes that the oracles' loops cannot make."""

from typing import TYPE_CHECKING

import numpy as np

from tformer.check.spec import Array, mistakes

if TYPE_CHECKING:
    from torch import Tensor


def rms_norm_in_torch(x: "Tensor", weight: "Tensor", eps: float) -> "Tensor":
    """Normalise in float32 at least, by methods of tensors."""
    wide = x.double()
    normalised = wide * (wide * wide).mean(-1, True).add(eps).rsqrt()
    return (normalised * weight).to(x.dtype)


def layer_norm_in_torch(
    x: "Tensor", weight: "Tensor", bias: "Tensor | None", eps: float
) -> "Tensor":
    """Take the mean first, by methods of tensors."""
    wide = x if x.element_size() > 2 else x.float()
    mean = wide.mean(-1, True)
    variance = (wide - mean).square().mean(-1, True)
    scaled = (wide - mean) * (variance + eps).rsqrt() * weight
    return (scaled if bias is None else scaled + bias).to(x.dtype)


RMS_NORM_IN_TORCH = mistakes(
    rms_norm_in_torch,
    """
    # block-today#the-formula
    half_inside precision: You square in half precision: 256² is infinite there.
        x.double() → x
    """,
    "torch",
)
LAYER_NORM_IN_TORCH = mistakes(
    layer_norm_in_torch,
    """
    # residuals#the-formula
    loses_digits precision: You took the mean of squares minus the square of the
        mean: far from 0 they cancel. Subtract the mean first.
        (wide - mean).square().mean(-1, True) →
            wide.square().mean(-1, True) - mean.square()
    """,
    "torch",
)


def rms_norm_at_once(x: Array, weight: Array, eps: float) -> Array:
    """Normalise all vectors at once."""
    mean_square = (x * x).mean(-1, keepdims=True)
    return np.asarray(x / np.sqrt(mean_square + eps) * weight)


RMS_NORM_AT_ONCE = mistakes(
    rms_norm_at_once,
    """
    # block-today#the-formula
    axis_not_kept: You lost the last axis with the mean: keep it (keepdim=True).
        mean(-1, keepdims=True) → mean(-1)
    first_axis: You took the mean along the first axis; it is along the last.
        mean(-1, → mean(0,
    running_sum: Your sum of squares runs on from vector to vector: begin anew.
        (x * x).mean(-1, keepdims=True) →
            (x * x).sum(-1).cumsum().reshape(*x.shape[:-1], 1) / x.shape[-1]
    """,
)


def layer_norm_at_once(
    x: Array, weight: Array, bias: Array | None, eps: float
) -> Array:
    """Normalise all vectors at once."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + eps) * weight
    return np.asarray(scaled if bias is None else scaled + bias)


LAYER_NORM_AT_ONCE = mistakes(
    layer_norm_at_once,
    """
    # residuals#the-formula
    axis_not_kept: You lost the last axis with mean and variance: keep it
        (keepdim=True).
        x.mean(-1, keepdims=True), x.var(-1, keepdims=True) → x.mean(-1), x.var(-1)
    """,
)
