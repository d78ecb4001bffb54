"""Specs of heads: cut out of the width, put side by side, and normalised together."""

import numpy as np

from tformer.check.norms import rms_norm
from tformer.check.spec import Array, Case, Spec, draw

_LOUD = np.array([10.0, 0.1]).reshape(1, 2, 1, 1)


@Spec(
    Case("two heads", (draw(1, 3, 4), 2)),
    Case("three heads", (draw(2, 5, 12), 3)),
    wrong="""
    # heads#the-code
    view_only: You view straight to (B, H, T, Dh), which mixes positions with features:
        view, then transpose.
        np.stack(heads, 1) → x.reshape(len(x), num_heads, x.shape[1], -1)
    interleaved: Your head h has every H-th column; it has h · Dh to (h + 1) · Dh.
        x[..., h * Dh : (h + 1) * Dh] → x[..., h::num_heads]
    """,
)
def split_heads(x: Array, num_heads: int) -> Array:
    """Give head h the columns h · Dh to (h + 1) · Dh."""
    Dh = x.shape[-1] // num_heads
    heads = [x[..., h * Dh : (h + 1) * Dh] for h in range(num_heads)]
    return np.stack(heads, 1)


@Spec(
    Case("two heads", (draw(1, 2, 3, 2),)),
    Case("three heads", (draw(2, 3, 5, 4),)),
    wrong="""
    # heads#the-code
    merged_as_it_lies: You merge without the transpose back to (B, T, H, Dh).
        np.concatenate(heads, -1) → x.reshape(len(x), x.shape[2], -1)
    in_turn: You take one feature of each head in turn.
        concatenate(heads, -1) → stack(heads, -1).reshape(len(x), x.shape[2], -1)
    """,
)
def merge_heads(x: Array) -> Array:
    """Put the heads side by side."""
    heads = [x[:, h] for h in range(x.shape[1])]
    return np.concatenate(heads, -1)


@Spec(
    Case("two heads", (draw(1, 2, 2, 3), draw(6), 1e-6)),
    Case("three heads", (draw(2, 3, 4, 2), draw(6, seed=1), 1e-6)),
    Case("one head", (draw(1, 1, 3, 4), draw(4), 1e-6)),
    Case("a loud head, a large ε", (draw(1, 2, 3, 3) * _LOUD, draw(6), 0.5)),
    wrong="""
    # qk-norm#the-norm-of-queries-has-the-wrong-width
    each_by_itself: You normalised each head by itself: all of a token are one vector.
        rms_norm(whole, gain, eps) → np.concatenate(
            [rms_norm(x[b, h, t], g, eps) for h, g in enumerate(np.split(gain, H))])
    gain_of_first_head: You multiplied all heads by the gain of the first.
        rms_norm(whole, gain, → rms_norm(whole, np.tile(gain[:Dh], H),
    gain_in_turn: You laid the gain out in turn: its first numbers are the first head's.
        rms_norm(whole, gain, → rms_norm(whole, gain.reshape(Dh, H).T.ravel(),
    tokens_together: You normalised the tokens together: each is a vector of its own.
        rms_norm(whole, gain, eps) →
            gain * whole / np.sqrt((x[b] ** 2).mean() + eps)
    over_heads: You normalised each number over the heads: all numbers of a token count.
        rms_norm(whole, gain, eps) → gain * whole / np.sqrt(
            np.tile((x[b, :, t] ** 2).mean(0), H) + eps)
    root_of_sum: You added the mean squares of the heads up: take their mean.
        rms_norm(whole, gain, eps) → gain * whole / np.sqrt(
            (x[b, :, t] ** 2).mean(1).sum() + eps)
    gain_ignored: You left the gain out.
        rms_norm(whole, gain, → rms_norm(whole, np.ones(H * Dh),
    heads_in_turn: You gave head h each H-th number of what was normalised.
        whole[h * Dh : (h + 1) * Dh] → whole[h::H]
    """,
)
def norm_over_heads(x: Array, gain: Array, eps: float) -> Array:
    """Normalise the heads of a token as one vector."""
    B, H, T, Dh = x.shape
    output = np.zeros(x.shape)
    for b, t in np.ndindex(B, T):
        whole = np.concatenate([x[b, h, t] for h in range(H)])
        whole = rms_norm(whole, gain, eps)
        for h in range(H):
            output[b, h, t] = whole[h * Dh : (h + 1) * Dh]
    return output
