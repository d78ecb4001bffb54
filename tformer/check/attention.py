"""Specs of attention: softmax(Q Kᵀ / √d_k) V, and with fewer key/value heads."""

from math import sqrt, tanh

import numpy as np

from tformer.check import attending
from tformer.check.masks import causal_mask
from tformer.check.spec import Array, Case, Spec, draw


def _inputs(
    B: int, H: int, T: int, S: int, Dh: int = 7, Dv: int = 7, G: int = 0
) -> tuple[Array, Array, Array]:
    G = G or H
    return draw(B, H, T, Dh), draw(B, G, S, Dh, seed=1), draw(B, G, S, Dv, seed=2)


def _mask(*shape: int) -> Array:
    """Hide some keys, never the first, and from the last query all."""
    mask = draw(*shape, seed=3) < 0.3
    mask[..., 0] = True
    mask[..., -1, :] = False
    return mask


LARGE = tuple(30 * x for x in _inputs(1, 2, 3, 5))
PADDING = np.arange(5) < np.array([5, 3])[:, None, None, None]  # (B, 1, 1, S)
CAUSAL = {"is_causal": True}
SQUARE, OBLONG = _inputs(2, 3, 5, 5), _inputs(2, 3, 4, 5, 7, 6)
SINKS = draw(3)


@Spec(
    Case("two heads read one", _inputs(1, 2, 2, 3, 4, 4, G=1)),
    Case("four heads read two", _inputs(2, 4, 3, 5, 7, 6, G=2)),
    Case("six heads read three, causal", _inputs(1, 6, 4, 5, G=3), CAUSAL),
    Case("one key head", _inputs(2, 4, 3, 3, 5, 5, G=1)),
    Case("as many key heads", _inputs(1, 3, 2, 3, 4, 4, G=3)),
    Case(
        "large scores, two key heads", tuple(40 * x for x in _inputs(1, 4, 2, 3, G=2))
    ),
    Case("softcap", _inputs(1, 4, 4, 5, G=2), {"softcap": 1.0}),
    Case("sinks", _inputs(1, 4, 3, 3, G=2), {"sinks": draw(4), **CAUSAL}),
    wrong=attending.GROUPED,
    parts={
        "attention": """unscaled divided_by_d multiplied width_of_model always_causal
        always_causal_from_first
        cosine keys_as_values key_and_value_swapped query_and_key_swapped
        softmax_over_queries no_softmax overflow scaled_after number_of_keys
        number_of_heads key_not_transposed softmax_twice not_divided"""
    },
    also=attending.OF_GROUPS,
    name="grouped_attention",
)
@Spec(
    Case("two tokens", _inputs(1, 1, 2, 2, 4, 4)),
    Case("fewer queries than keys, wider values", OBLONG),
    Case("large scores", LARGE),
    Case("padding", (*_inputs(2, 3, 4, 5), PADDING)),
    Case("a mask of rows, one of them empty", (*OBLONG, _mask(4, 5))),
    Case("a mask of each head, with empty rows", (*OBLONG, _mask(2, 3, 4, 5))),
    Case("causal", SQUARE, CAUSAL),
    Case("causal, more keys", OBLONG, CAUSAL),
    Case("causal, more queries", _inputs(1, 2, 5, 3), CAUSAL),
    Case("causal and a mask", (*SQUARE, _mask(5, 5)), CAUSAL),
    Case("scale", SQUARE, {"scale": 0.3}),
    Case("softcap", LARGE, {"softcap": 2.0}),
    Case("bias", OBLONG, {"bias": draw(1, 3, 4, 5)}),
    Case(
        "bias, softcap, causal and a mask",
        (*SQUARE, _mask(2, 1, 5, 5)),
        {"bias": draw(5, 5), "softcap": 1.5, **CAUSAL},
    ),
    Case("a window of three", _inputs(1, 2, 4, 7), {"window": 3, **CAUSAL}),
    Case("a window of one", SQUARE, {"window": 1, **CAUSAL}),
    Case("sinks", SQUARE, {"sinks": SINKS, **CAUSAL}),
    Case("sinks and a mask", (*OBLONG, _mask(4, 5)), {"sinks": SINKS}),
    Case("sinks and a window", SQUARE, {"sinks": SINKS, "window": 2, **CAUSAL}),
    Case("segments", _inputs(1, 2, 5, 5), {"segments": [2, 3]}),
    Case("segments, causal", _inputs(1, 2, 6, 6), {"segments": [1, 3, 2], **CAUSAL}),
    wrong="""
    # attention#the-formula
    unscaled: You left out the division by √d_k.
        1 / sqrt(Dh) → 1.0
    divided_by_d: You divided by d_k and not by its root.
        1 / sqrt(Dh) → 1 / Dh
    width_of_model: You divided by the root of the whole width, not of one head's.
        1 / sqrt(Dh) → 1 / sqrt(H * Dh)
    multiplied: You multiplied by √d_k; divide by it.
        1 / sqrt(Dh) → sqrt(Dh)
    width_of_values: You divided by the root of the values' width, not of the keys'.
        1 / sqrt(Dh) → 1 / sqrt(value.shape[-1])
    number_of_keys: You divided by the root of the number of keys, not of their width.
        1 / sqrt(Dh) → 1 / sqrt(S)
    number_of_heads: You divided by the root of the number of heads.
        1 / sqrt(Dh) → 1 / sqrt(H)
    half_the_width: You divided by the root of d_model / 2.
        1 / sqrt(Dh) → 1 / sqrt(Dh / 2)
    scaled_after: You divided by √d_k after the softmax; divide the scores.
        1 / sqrt(Dh) → 1.0
        weights @ value → weights / sqrt(Dh) @ value
    cosine: You normalised queries and keys to length 1, in place of scaling.
        scale * float(query[b, h, t] @ key → attending.cosine(query[b, h, t], key
    cosine_scaled: You normalised queries and keys to length 1, and divided by √d_k.
        float(query[b, h, t] @ key → attending.cosine(query[b, h, t], key
    distances: You scored by distances; it is the product of query and key.
        float(query[b, h, t] @ key → attending.nearness(query[b, h, t], key
    key_not_transposed: You gave the key another shape with reshape: transpose it.
        key[b, g, s]) → key[b, g].reshape(Dh, S)[:, s])
    keys_as_values: You mixed the keys; mix the values.
        weights @ value[b, g] → weights @ key[b, g]
        value.shape[-1])) → Dh))
    queries_as_keys: You compared the queries with themselves.
        @ key[b, g, s] → @ query[b, h, s]
    keys_as_queries: You compared the keys with themselves.
        query[b, h, t] @ → key[b, g, t] @
    values_as_keys: You compared queries with values; compare them with keys.
        @ key[b, g, s] → @ value[b, g, s]
    key_and_value_swapped: You exchanged key and value.
        @ key[b, g, s] → @ value[b, g, s]
        weights @ value[b, g] → weights @ key[b, g]
        value.shape[-1])) → Dh))
    query_and_key_swapped: You exchanged query and key.
        query[b, h, t] @ key[b, g, s] → key[b, g, t] @ query[b, h, s]
    sigmoid: You took the sigmoid of the scores; take the softmax over the keys.
        powers / np.where(total == 0, 1.0, total) → seen / (1 + np.exp(-scores))
    not_normalised: You took exp of the scores, and did not divide by the sum.
        powers / np.where(total == 0, 1.0, total) → np.where(seen, np.exp(scores), 0.0)
    not_divided: You subtracted the largest score and took exp; divide by the sum.
        powers / np.where(total == 0, 1.0, total) → powers
    by_sum_of_scores: You divided the scores by their sum, without exp.
        powers / np.where(total == 0, 1.0, total) → attending.shares(seen * scores)
    softmax_twice: You took the softmax twice.
        weights @ value → np.where(seen, attending.softmax(weights), 0.0) @ value
    negative_scores: You took the softmax of the negative scores.
        scores[t, s] = score → scores[t, s] = -score
    hardest: You took the value of the best key alone.
        powers / np.where(total == 0, 1.0, total) → seen * (powers == 1.0)
    mean_of_values: You weighted all keys alike.
        powers / np.where(total == 0, 1.0, total) → attending.shares(1.0 * seen)
    softmax_over_queries: You took the softmax over the queries: over the keys the
        weights must sum to 1.
        hidden.max(-1 → hidden.max(-2
        powers.sum(-1 → powers.sum(-2
        np.where(total == 0, 1.0, total) → total
    no_softmax: You mixed the values by the scores, without a softmax.
        powers / np.where(total == 0, 1.0, total) → np.where(seen, scores, 0.0)
    overflow: You took exp of the scores as they are: subtract each row's largest.
        0.0, largest) → 0.0, 0.0)
    # masks#the-formula
    mask_inverted: You hid what the mask allows: True means that a query may attend.
        = allowed[b, h, t, s] → = (mask is None or not allowed[b, h, t, s])
    mask_ignored: You did not use the mask.
        allowed[b, h, t, s] and →
    always_causal: You hid what comes later, and no mask said so.
        if is_causal else → if True else
    always_causal_from_first: You hid what comes later, counted from the first key, and
        no mask said so.
        else np.ones((T, S), bool) → else np.tri(T, S, dtype=bool)
    mask_of_first_head: You used the mask of the first head for all.
        = allowed[b, h, t, s] → = allowed[b, 0, t, s]
    mask_of_first_row: You used the mask of the first text for all of the batch.
        = allowed[b, h, t, s] → = allowed[0, h, t, s]
    mask_of_first_query: You used the mask of the first query for all.
        = allowed[b, h, t, s] → = allowed[b, h, 0, s]
    mask_of_last_query: You used the mask of the last query for all.
        = allowed[b, h, t, s] → = allowed[b, h, -1, s]
    four_axes_only: Your mask must have four axes: it may have any that broadcast.
        if mask is None else mask, (B → if mask is None else attending.of_four(mask), (B
    mask_after_softmax: You masked the weights after the softmax: the rest no longer
        sums to 1.
        np.where(seen, scores, -np.inf) → scores
        weights @ value → (weights * seen) @ value
    masked_to_zero: You gave hidden keys the score 0 and not -inf: exp(0) is 1.
        scores, -np.inf) → scores, 0.0)
    mask_added: You added the mask to the scores as 0 and 1, which hides nothing.
        np.where(seen, scores, -np.inf) → scores + seen
    dead_rows_nan: A query that may attend to nothing gives NaN: softmax of -inf alone
        is 0/0.
        np.where(total == 0, 1.0, total) → total
    dead_rows_unmasked: A query that may attend to nothing attends to all: you add a
        large negative number to its scores.
        scores, -np.inf) → scores, scores - 1e6)
    weakly_hidden: You hid keys by a number that is not low enough: use -inf.
        scores, -np.inf) → scores, -10.0)
    weakly_subtracted: You subtracted too little from hidden scores: use -inf.
        scores, -np.inf) → scores, scores - 10.0)
    dead_rows_even: A query that may attend to nothing attends to all evenly: you fill
        with a large negative number.
        scores, -np.inf) → scores, -1e9)
    # attention-sinks#the-formula
    sinks_ignored: You left the sinks out of the softmax.
        -np.inf if sinks is None else sinks[h] → -np.inf
    # qk-norm#the-formula
    softcap_ignored: You did not bound the scores by the softcap.
        softcap * tanh(score / softcap) if softcap else score → score
    # relative-biases#the-formula
    bias_scaled: You scaled the bias with the scores: it is added after the scaling.
        score + added → score + scale * added
    # batches#the-formula
    segments_ignored: You let sequences that lie side by side see each other.
        text[t] == text[s] → True
    """,
    parts={"causal_mask": "first_on_first diagonal_hidden one_ahead window_one_more"},
    also=(*attending.IN_TORCH, *attending.AT_ONCE),
)
def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    bias: Array | None = None,
    is_causal: bool = False,
    window: int | None = None,
    sinks: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    segments: list[int] | None = None,
) -> Array:
    """Attend head by head, score by score."""
    (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
    scale = 1 / sqrt(Dh) if scale is None else scale
    text = np.repeat(np.arange(len(segments or [S])), segments or [S])
    allowed = np.broadcast_to(True if mask is None else mask, (B, H, T, S))
    added = np.broadcast_to(0.0 if bias is None else bias, (B, H, T, S))
    past = causal_mask(T, S, window=window) if is_causal else np.ones((T, S), bool)
    output = np.zeros((B, H, T, value.shape[-1]))
    for b, h in np.ndindex(B, H):
        g = h // (H // G)
        scores, seen = np.zeros((T, S)), np.zeros((T, S), bool)
        for t, s in np.ndindex(T, S):
            score = scale * float(query[b, h, t] @ key[b, g, s])
            score = softcap * tanh(score / softcap) if softcap else score
            scores[t, s] = score + added[b, h, t, s]
            in_text = segments is None or text[t] == text[s]
            seen[t, s] = allowed[b, h, t, s] and in_text and past[t, s]
        sink = -np.inf if sinks is None else sinks[h]
        hidden = np.where(seen, scores, -np.inf)
        largest = np.maximum(hidden.max(-1, keepdims=True), sink)
        shift = np.where(largest == -np.inf, 0.0, largest)
        powers = np.exp(hidden - shift)
        total = powers.sum(-1, keepdims=True) + np.exp(sink - shift)
        weights = powers / np.where(total == 0, 1.0, total)
        output[b, h] = weights @ value[b, g]
    return output
