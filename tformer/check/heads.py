"""Specs of multi-head attention: heads cut out of the width, and put side by side."""

import numpy as np

from tformer.check.attending import over_heads  # noqa: F401 - for a mistake
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
_OF_HEADS = draw(2, 3, 5, 5, seed=9) < 0.4
_OF_HEADS[..., 0] = True  # each query sees one key at least
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


def _summed(x: Array) -> Array:
    """For a mistake: the sum of the heads, in the place of each."""
    return np.asarray(np.tile(x.sum(1), x.shape[1]))


def _backwards(x: Array) -> Array:
    """For a mistake: the heads in the other order."""
    return merge_heads(x[:, ::-1])


def _same(x: Array) -> Array:
    """For a mistake: what stands in the place of merging."""
    return x


def _across(q: Array, k: Array, v: Array, *_: object, **_options: object) -> Array:
    """For a mistake: attention of the heads of a token."""
    tokens = (x.swapaxes(1, 2) for x in (q, k, v))
    return attention(*tokens).reshape(len(q), q.shape[2], -1)


def _of_last(q: Array, k: Array, v: Array, *more: Array, is_causal: bool) -> Array:
    """For a mistake: the result of the last head, for each."""
    heads = attention(q, k, v, *more, is_causal=is_causal)
    return heads[:, -1:].repeat(q.shape[1], 1)


def _in_turn(q: Array, k: Array, v: Array, *_: object, **_options: object) -> Array:
    """For a mistake: attention of the heads of a token, and a transpose at the end."""
    tokens = (x.swapaxes(1, 2) for x in (q, k, v))
    return attention(*tokens).swapaxes(1, 2).reshape(len(q), q.shape[2], -1)


@Spec(
    Case("one head", _inputs(1, 2, 3, 1, 3)),
    Case("three heads", _WHOLE),
    Case("three heads and padding", (*_WHOLE, _PADDING)),
    Case("a causal mask", (*_WHOLE, np.tri(5, dtype=bool))),
    Case("a mask of each head", (*_WHOLE, _OF_HEADS)),
    Case("narrower heads", _inputs(1, 3, 5, 2, 2), exercise=False),
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
    inner_heads: Your heads of a token attend to each other, not to tokens.
        merge_heads(attention(q, → _same(_across(q,
    not_split_back: You left the transpose to (B, H, T, Dh) out: the heads of a token
        attend to each other, and come back in another order.
        merge_heads(attention(q, → _same(_in_turn(q,
    softmax_over_heads: You took the softmax over the heads: it runs over the keys.
        merge_heads(attention(q, → merge_heads(over_heads(q,
    query_not_transposed: You multiplied by w_q; its shape is (out, in), so it is x Wᵀ.
        x @ w_q.T → x @ w_q
    key_not_transposed: You multiplied by w_k; its shape is (out, in), so it is x Wᵀ.
        source @ w_k.T → source @ w_k
    value_not_transposed: You multiplied by w_v; its shape is (out, in), so it is x Wᵀ.
        source @ w_v.T → source @ w_v
    one_head: You attend with one head of the whole width.
        q = split_heads(x @ w_q.T, num_heads) → q = split_heads(x @ w_q.T, 1)
        k = split_heads(source @ w_k.T, num_kv_heads or num_heads) →
            k = split_heads(source @ w_k.T, 1)
        v = split_heads(source @ w_v.T, num_kv_heads or num_heads) →
            v = split_heads(source @ w_v.T, 1)
    queries_as_keys: Your keys are the queries.
        k = split_heads(source @ w_k.T → k = split_heads(source @ w_q.T
    values_as_keys: Your keys are the values.
        k = split_heads(source @ w_k.T → k = split_heads(source @ w_v.T
    query_and_key_swapped: You exchanged w_q and w_k.
        q = split_heads(x @ w_q.T → q = split_heads(x @ w_k.T
        k = split_heads(source @ w_k.T → k = split_heads(source @ w_q.T
    key_and_value_swapped: You exchanged w_k and w_v.
        k = split_heads(source @ w_k.T → k = split_heads(source @ w_v.T
        v = split_heads(source @ w_v.T → v = split_heads(source @ w_k.T
    query_and_value_swapped: You exchanged w_q and w_v.
        q = split_heads(x @ w_q.T → q = split_heads(x @ w_v.T
        v = split_heads(source @ w_v.T → v = split_heads(source @ w_q.T
    one_weight: You used one weight for queries, keys and values.
        k = split_heads(source @ w_k.T → k = split_heads(source @ w_q.T
        v = split_heads(source @ w_v.T → v = split_heads(source @ w_q.T
    no_values: You mix what comes in, and left w_v out.
        source @ w_v.T → source @ np.eye(*w_v.T.shape)
    heads_summed: You added the heads up; put them side by side.
        merge_heads( → _summed(
    output_of_first_head: You projected each head by the first columns of w_o: head h
        has its own.
        joined @ w_o.T → _summed(split_heads(joined, num_heads))[
            ..., : len(w_q) // num_heads] @ w_o[:, : len(w_q) // num_heads].T
    same_columns: All your heads have the columns of the first.
        w_q.T, num_heads) → w_q.T, num_heads)[:, :1].repeat(num_heads, 1)
        w_k.T, num_kv_heads or num_heads) →
            w_k.T, num_heads)[:, :1].repeat(num_heads, 1)
        w_v.T, num_kv_heads or num_heads) →
            w_v.T, num_heads)[:, :1].repeat(num_heads, 1)
    last_head_everywhere: You put the last head side by side with itself.
        merge_heads(attention(q, → merge_heads(_of_last(q,
    heads_averaged: You took the mean of the heads; put them side by side.
        merge_heads( → 1 / num_heads * _summed(
    heads_backwards: You put the heads side by side in the other order.
        merge_heads( → _backwards(
    output_not_transposed: You multiplied by w_o; its shape is (out, in): x w_oᵀ.
        joined @ w_o.T → joined @ w_o
    projections_not_transposed: You multiplied by w_q, w_k and w_v; it is x Wᵀ.
        x @ w_q.T → x @ w_q
        source @ w_k.T → source @ w_k
        source @ w_v.T → source @ w_v
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
    parts={
        "split_heads": "view_only interleaved",
        "merge_heads": "merged_as_it_lies in_turn",
        "attention": """unscaled divided_by_d multiplied width_of_model mask_inverted
        always_causal masked_to_zero mask_after_softmax softmax_over_queries
        mask_of_first_head mask_added no_softmax mask_of_first_row number_of_heads
        mask_of_first_query scaled_after four_axes_only cosine weakly_hidden
        not_divided""",
    },
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
