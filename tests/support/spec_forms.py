"""The forms of each concept that the package has, with the signature of its spec."""

from collections.abc import Callable
from typing import Any

import tformer
from tformer import reference
from tformer.nn import masks, norm, rms_norm
from tformer.reference import masks as twin_masks

Form = Callable[..., Any]


def causal_mask(of: Any) -> Form:
    def make(T, S, *, window=None):
        if window is None:
            return of.causal_mask(T, S)
        return of.sliding_window_mask(T, window, S)

    return make


def plus_one(rms_norm: Form) -> Form:
    def norm(x, weight, eps, *, plus_one=False):
        return rms_norm(x, 1 + weight if plus_one else weight, eps)

    return norm


# Of each spec the function in torch and in NumPy; None where there is none.
FORMS: dict[str, tuple[Form | None, Form | None]] = {
    "attention": (
        tformer.scaled_dot_product_attention,
        reference.scaled_dot_product_attention,
    ),
    "grouped_attention": (
        tformer.scaled_dot_product_attention,
        reference.scaled_dot_product_attention,
    ),
    "causal_mask": (causal_mask(masks), causal_mask(twin_masks)),
    "length_mask": (masks.length_mask, twin_masks.length_mask),
    "combine_masks": (masks.combine_masks, twin_masks.combine_masks),
    "layer_norm": (norm.layer_norm, reference.layer_norm),
    "rms_norm": (rms_norm.rms_norm, reference.rms_norm),
}
# What a form of the package refuses, with an error that says so.
REFUSED: dict[str, tuple[str, ...]] = {}
