"""The spec of multi-head attention, with the parts that models of today have."""

import numpy as np

from tformer.check.attending import over_heads  # noqa: F401 - for a mistake
from tformer.check.attention import attention
from tformer.check.cutting import merge_heads, split_heads
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
_BIASES = {f"{x}_bias": draw(6, seed=i) for i, x in enumerate("qkv")} | _ROTATION
_ROTATED_GAINS = _ROTATION | {"q_gain": draw(4, seed=5), "k_gain": draw(4, seed=6)}


def _summed(x: Array) -> Array:
    """For a mistake: the sum of the heads, in the place of each."""
    return np.asarray(np.tile(x.sum(1), x.shape[1]))


def _backwards(x: Array) -> Array:
    """For a mistake: the heads in the other order."""
    return merge_heads(x[:, ::-1])


def _same(x: Array) -> Array:
    """For a mistake: what stands in the place of merging."""
    return x


def _plus(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + bias


def _heads_of(bias: Array | None, num_heads: int) -> Array:
    """For a mistake: a bias cut into heads, (1, H, 1, Dh)."""
    return split_heads(
        np.zeros((1, 1, num_heads)) if bias is None else bias[None, None], num_heads
    )


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
    Case("biases of three projections", _WHOLE, _BIASES),
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
        q_bias), num_heads) → q_bias), 1)
        k_bias), num_kv_heads or num_heads) → k_bias), 1)
        v_bias), num_kv_heads or num_heads) → v_bias), 1)
    queries_as_keys: Your keys are the queries.
        _plus(source @ w_k.T, k_bias → _plus(source @ w_q.T, k_bias
    values_as_keys: Your keys are the values.
        _plus(source @ w_k.T, k_bias → _plus(source @ w_v.T, k_bias
    query_and_key_swapped: You exchanged w_q and w_k.
        _plus(x @ w_q.T, q_bias → _plus(x @ w_k.T, q_bias
        _plus(source @ w_k.T, k_bias → _plus(source @ w_q.T, k_bias
    key_and_value_swapped: You exchanged w_k and w_v.
        _plus(source @ w_k.T, k_bias → _plus(source @ w_v.T, k_bias
        _plus(source @ w_v.T, v_bias → _plus(source @ w_k.T, v_bias
    query_and_value_swapped: You exchanged w_q and w_v.
        _plus(x @ w_q.T, q_bias → _plus(x @ w_v.T, q_bias
        _plus(source @ w_v.T, v_bias → _plus(source @ w_q.T, v_bias
    one_weight: You used one weight for queries, keys and values.
        _plus(source @ w_k.T, k_bias → _plus(source @ w_q.T, k_bias
        _plus(source @ w_v.T, v_bias → _plus(source @ w_q.T, v_bias
    no_values: You mix what comes in, and left w_v out.
        source @ w_v.T → source @ np.eye(*w_v.T.shape)
    no_queries: Your queries are what comes in: you left w_q out.
        x @ w_q.T → x @ np.eye(*w_q.T.shape)
    heads_summed: You added the heads up; put them side by side.
        merge_heads( → _summed(
    output_of_first_head: You projected each head by the first columns of w_o: head h
        has its own.
        joined @ w_o.T → _summed(split_heads(joined, num_heads))[
            ..., : len(w_q) // num_heads] @ w_o[:, : len(w_q) // num_heads].T
    same_columns: All your heads have the columns of the first.
        q_bias), num_heads) → q_bias), num_heads)[:, :1].repeat(num_heads, 1)
        k_bias), num_kv_heads or num_heads) →
            k_bias), num_heads)[:, :1].repeat(num_heads, 1)
        v_bias), num_kv_heads or num_heads) →
            v_bias), num_heads)[:, :1].repeat(num_heads, 1)
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
    # qk-norm#output-gate
    gate_ignored: You left the gate of the output out.
        if w_gate is not None: → if w_gate is False:
    gate_after: You multiplied by the gate after the last projection: it comes before.
        joined = joined / (1 + np.exp(-x @ w_gate.T)) →
            return joined @ w_o.T / (1 + np.exp(-x @ w_gate.T))
    gate_of_silu: You multiplied by silu: attention's gate is a sigmoid.
        joined / (1 + → joined * (x @ w_gate.T) / (1 +
    gate_alone: You multiplied by the projection itself; its sigmoid is the gate.
        joined / (1 + np.exp(-x @ w_gate.T)) → joined * (x @ w_gate.T)
    gate_of_values: You computed the gate of what the heads bring: it is made of x.
        np.exp(-x @ → np.exp(-joined @
    # qk-norm#biases
    biases_ignored: You left the biases of queries, keys and values out.
        _plus(x @ w_q.T, q_bias) → x @ w_q.T
        _plus(source @ w_k.T, k_bias) → source @ w_k.T
        _plus(source @ w_v.T, v_bias) → source @ w_v.T
    queries_bias_alone: You gave a bias to the queries alone.
        _plus(source @ w_k.T, k_bias) → source @ w_k.T
        _plus(source @ w_v.T, v_bias) → source @ w_v.T
    keys_without_bias: You left the bias of the keys out: once rotated, it counts.
        _plus(source @ w_k.T, k_bias) → source @ w_k.T
    values_without_bias: You left the bias of the values out.
        _plus(source @ w_v.T, v_bias) → source @ w_v.T
    bias_after_rotation: You added the biases after the rotation: it turns them too.
        _plus(x @ w_q.T, q_bias) → x @ w_q.T
        _plus(source @ w_k.T, k_bias) → source @ w_k.T
        q, k = rotated(q), rotated(k) →
            q = rotated(q) + _heads_of(q_bias, num_heads);
            k = rotated(k) + _heads_of(k_bias, num_kv_heads or num_heads)
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
    q_bias: Array | None = None,
    k_bias: Array | None = None,
    v_bias: Array | None = None,
    w_gate: Array | None = None,
) -> Array:
    """Project, cut into heads, attend with each, join, project."""
    source = x if memory is None else memory
    q = split_heads(_plus(x @ w_q.T, q_bias), num_heads)
    k = split_heads(_plus(source @ w_k.T, k_bias), num_kv_heads or num_heads)
    v = split_heads(_plus(source @ w_v.T, v_bias), num_kv_heads or num_heads)

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
