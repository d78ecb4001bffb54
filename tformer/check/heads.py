"""Specs of multi-head attention: heads cut out of the width, and put side by side."""

import numpy as np

from tformer.check.attention import attention
from tformer.check.norms import rms_norm
from tformer.check.rotation import rotary
from tformer.check.spec import Array, Case, Spec, draw

EPS = 1e-6  # of the norms of queries and keys


def _inputs(B: int, T: int, D: int, H: int, Dh: int, G: int = 0) -> tuple[object, ...]:
    shapes = ((H * Dh, D), ((G or H) * Dh, D), ((G or H) * Dh, D), (D, H * Dh))
    weights = (draw(*shape, seed=i) for i, shape in enumerate(shapes))
    return (draw(B, T, D), *weights, H)


_WHOLE = _inputs(2, 5, 6, 3, 2)
_PADDING = np.arange(5) < np.array([5, 3])[:, None, None, None]
_ROTATION = {"rotary_base": 100.0, "is_causal": True}
_GAINS = {"q_gain": draw(2, seed=5), "k_gain": draw(2, seed=6), "is_causal": True}
_ROTATED_GAINS = _ROTATION | {"q_gain": draw(4, seed=5), "k_gain": draw(4, seed=6)}


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
    Case("one head", _inputs(1, 2, 3, 1, 3)),
    Case("three heads", _WHOLE),
    Case("three heads and padding", (*_WHOLE, _PADDING)),
    Case("a causal mask", (*_WHOLE, np.tri(5, dtype=bool))),
    Case("is_causal", _WHOLE, {"is_causal": True}),
    Case("from a memory", _WHOLE, {"memory": draw(2, 7, 6)}),
    Case("two key heads", _inputs(1, 5, 8, 4, 2, G=2), {"num_kv_heads": 2}),
    Case("norms", _WHOLE, _GAINS),
    Case("rotation", _WHOLE, _ROTATION),
    Case("norms and rotation, wider", _inputs(1, 4, 6, 2, 4), _ROTATED_GAINS),
    Case("a gate", _WHOLE, {"w_gate": draw(6, 6, seed=7), "is_causal": True}),
    wrong="""
    # heads#the-formula
    no_output: You left out the output projection.
        joined @ w_o.T → joined @ np.eye(*w_o.T.shape)
    keys_as_values: Your values are the keys.
        source @ w_v.T → source @ w_k.T
    mask_ignored: You did not use the mask.
        v, mask, → v, None,
    not_transposed: You multiplied by W; its shape is (out, in), so it is x Wᵀ.
        x @ w_q.T → x @ w_q
        source @ w_k.T → source @ w_k
        source @ w_v.T → source @ w_v
        joined @ w_o.T → joined @ w_o
    # rotary#the-norm-comes-after-the-rotation
    norm_after: Normalise queries and keys first, then rotate them.
        ("norm", "rotation") → ("rotation", "norm")
    # rotary#the-formula
    rotated_values: Rotate queries and keys; values stay.
        v, mask, → rotated(v), mask,
    """,
    parts={"split_heads": "view_only interleaved", "merge_heads": "merged_as_it_lies"},
)
def multi_head(
    x: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array,
    num_heads: int,
    mask: Array | None = None,
    *,
    memory: Array | None = None,
    num_kv_heads: int | None = None,
    is_causal: bool = False,
    q_gain: Array | None = None,
    k_gain: Array | None = None,
    rotary_base: float | None = None,
    w_gate: Array | None = None,
) -> Array:
    """Project, cut into heads, attend with each, join, project."""
    source = x if memory is None else memory
    q = split_heads(x @ w_q.T, num_heads)
    k = split_heads(source @ w_k.T, num_kv_heads or num_heads)
    v = split_heads(source @ w_v.T, num_kv_heads or num_heads)

    def rotated(y: Array) -> Array:
        return rotary(y, np.arange(y.shape[2]), rotary_base) if rotary_base else y

    for part in ("norm", "rotation"):
        if part == "norm" and q_gain is not None and k_gain is not None:
            q, k = rms_norm(q, q_gain, EPS), rms_norm(k, k_gain, EPS)
        if part == "rotation":
            q, k = rotated(q), rotated(k)
    joined = merge_heads(attention(q, k, v, mask, is_causal=is_causal))
    if w_gate is not None:
        joined = joined / (1 + np.exp(-x @ w_gate.T))
    return joined @ w_o.T
