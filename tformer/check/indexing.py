"""Specs of an indexer: a small attention that chooses the keys of the large one."""

from math import sqrt

import numpy as np

from tformer.check.masks import causal_mask
from tformer.check.spec import Array, Case, Spec, draw


def _scored(B: int, H: int, T: int, S: int, Dh: int) -> tuple[Array, Array, Array]:
    return draw(B, H, T, Dh), draw(B, 1, S, Dh, seed=1), draw(B, H, T, seed=2)


@Spec(
    Case("two heads, two keys", _scored(1, 2, 1, 2, 3)),
    Case("three heads", _scored(2, 3, 4, 5, 4)),
    Case("one head", _scored(1, 1, 3, 3, 2)),
    wrong="""
    # sparse-attention#indexer
    no_relu: You added the products as they are: what is below 0 counts as 0.
        max(product, 0.0) → product
    relu_of_sum: You put 0 for what is below 0 after the sum: it is done head by head.
        max(product, 0.0) → product
        = total / sqrt(H) → = max(total, 0.0) / sqrt(H)
    weight_inside: You multiplied by the weight first: below 0 it takes points away.
        weights[b, h, t] * max(product, 0.0) → max(weights[b, h, t] * product, 0.0)
    size: You took the size of a product: what is below 0 counts as 0.
        max(product, 0.0) → abs(product)
    unweighted: You added the heads up alike: each token weights them.
        weights[b, h, t] * max → max
    weights_of_first: You weighted the heads as the first token does.
        weights[b, h, t] → weights[b, h, 0]
    not_scaled: You left out the division by √Dh.
        / sqrt(Dh) →
    heads_not_scaled: You left out the division by √H.
        total / sqrt(H) → total
    averaged: You divided by the number of heads: it is its root.
        total / sqrt(H) → total / H
    softmax: You took the softmax over the keys: scores are only compared.
        return scores → return _softmax(scores)
    heads_kept: You return scores of each head: weight them, and add the heads up.
        np.zeros((B, 1, T, S)) → np.zeros((B, H, T, S))
        total += weights[b, h, t] * max(product, 0.0) →
            scores[b, h, t, s] = weights[b, h, t] * max(product, 0.0) / sqrt(H)
        scores[b, 0, t, s] = total / sqrt(H) → pass
    heads_axis_lost: Your result has no axis for the heads: it is (B, 1, T, S).
        return scores → return scores[:, 0]
    largest_head: You took the largest of the heads: they are added up.
        total += weights[b, h, t] * max(product, 0.0) →
            total = max(total, weights[b, h, t] * max(product, 0.0))
    last_head: You overwrote: what stays is the last head. Add the heads up.
        total += → total =
    first_head: You took the first head alone: add all of them up.
        in range(H) → in range(1)
    last_left_out: You left out the last head.
        in range(H) → in range(H - 1)
    below_zero: You kept what is below 0, and left out what is above.
        max(product, 0.0) → min(product, 0.0)
    relu_first: You put 0 for what is below 0 in query and key: it is done after the
        product.
        query[b, h, t] @ key[b, 0, s] →
            np.maximum(query[b, h, t], 0) @ np.maximum(key[b, 0, s], 0)
    sigmoid: You took the sigmoid of the products: it is ReLU.
        max(product, 0.0) → (1 / (1 + np.exp(-product)))
    silu: You took silu of the products: it is ReLU.
        max(product, 0.0) → product / (1 + np.exp(-product))
    squared: You took the square of ReLU.
        max(product, 0.0) → max(product, 0.0) ** 2
    exponential: You took exp of the products: it is ReLU.
        max(product, 0.0) → np.exp(product)
    weights_softmax: You took the softmax of the weights over the heads: they are taken
        as they are.
        weights[b, h, t] * max → _softmax(weights[b, :, t])[h] * max
    weights_sigmoid: You took the sigmoid of the weights: they are taken as they are.
        weights[b, h, t] * max → 1 / (1 + np.exp(-weights[b, h, t])) * max
    weights_positive: You put 0 for weights that are below 0: such a head takes points
        away.
        weights[b, h, t] * max → max(weights[b, h, t], 0.0) * max
    weights_of_last: You weighted the heads as the last token does.
        weights[b, h, t] → weights[b, h, -1]
    weights_of_first_head: You weighted all heads as the first one.
        weights[b, h, t] → weights[b, 0, t]
    divided_by_width: You divided by Dh: it is its root.
        / sqrt(Dh) → / Dh
    multiplied: You multiplied by √Dh: divide by it.
        / sqrt(Dh) → * sqrt(Dh)
    root_of_keys: You divided by the root of the number of keys: heads are counted.
        total / sqrt(H) → total / sqrt(S)
    future_hidden: You hid later keys: that is done where keys are chosen.
        = total / sqrt(H) → = total / sqrt(H) if s <= t + S - T else -np.inf
    """,
    dtypes=("float32",),  # scores are at least in float32
)
def index_scores(query: Array, key: Array, weights: Array) -> Array:
    """Score each key for each query: the heads' products, where they are above 0."""
    (B, H, T, Dh), S = query.shape, key.shape[2]
    scores = np.zeros((B, 1, T, S))
    for b, t, s in np.ndindex(B, T, S):
        total = 0.0
        for h in range(H):
            product = float(query[b, h, t] @ key[b, 0, s]) / sqrt(Dh)
            total += weights[b, h, t] * max(product, 0.0)
        scores[b, 0, t, s] = total / sqrt(H)
    return scores


def _softmax(scores: Array) -> Array:
    """For a mistake: shares of the keys."""
    powers = np.exp(scores)
    return np.asarray(powers / powers.sum(-1, keepdims=True))


_EQUAL = np.array([0.0, 2.0, 0.0, 0.0, 1.0])  # where ReLU made 0 of several
_OFTEN = np.tile(_EQUAL, (1, 1, 5, 1))
_OF_TEXTS = np.array([[True, True, False, True], [False, True, True, True]])[
    :, None, None
]


@Spec(
    Case("one of two keys", (draw(1, 1, 2, 2), 1, causal_mask(2, 2))),
    Case("two of five, causal", (draw(2, 1, 5, 5), 2, causal_mask(5, 5))),
    Case("equal scores", (_OFTEN, 3, causal_mask(5, 5))),
    Case("more than there are", (draw(1, 1, 3, 4), 7, causal_mask(3, 4))),
    Case("queries that see nothing", (draw(1, 1, 4, 3), 2, causal_mask(4, 3))),
    Case("a mask of each text", (draw(2, 1, 3, 4), 2, _OF_TEXTS)),
    wrong="""
    # sparse-attention#the-best-keys-chosen-before-the-mask
    before_mask: You chose the best of all keys, and hid some of them: choose of those
        that a query may see.
        if may_see[b, 0, t, s]] → ]
        best: → [x for x in best if may_see[b, 0, t, x]]:
    mask_ignored: You let a query choose keys that it may not see.
        if may_see[b, 0, t, s]] → ]
    # sparse-attention#indexer
    one_fewer: You chose one key fewer.
        [:top_k] → [: top_k - 1]
    one_more: You chose one key more.
        [:top_k] → [: top_k + 1]
    smallest: You chose the keys with the smallest scores.
        -scores[b, 0, t, s], s → scores[b, 0, t, s], s
    later_wins: Of equal scores you took the later key: the earlier one wins.
        -scores[b, 0, t, s], s → -scores[b, 0, t, s], -s
    all_equal: You kept all keys that score as the last of the best: there are k.
        best: → [x for x in seen if scores[b, 0, t, x] >= scores[b, 0, t, best[-1]]]:
    latest: You kept the last k keys: that is a window.
        -scores[b, 0, t, s], s → -s, s
    hidden_chosen: You marked the keys that are left out: True = attends.
        return chosen → return may_see & ~chosen
    as_all_choose: You chose keys once for all queries: each has its own.
        -scores[b, 0, t, s], s → -scores[b, 0, -1, s], s
    hidden_filled: Where a query sees fewer than k keys you marked hidden ones, too.
        if may_see[b, 0, t, s]] → ]
        -scores[b, 0, t, s], s → -scores[b, 0, t, s] if may_see[
            b, 0, t, s] else np.inf, s
    hidden_as_zero: You gave hidden keys a score of 0: that may win.
        if may_see[b, 0, t, s]] → ]
        -scores[b, 0, t, s], s → -scores[b, 0, t, s] * may_see[b, 0, t, s], s
        best: → [x for x in best if may_see[b, 0, t, x]]:
    mask_inverted: You chose among the keys that a query may not see: True = may see.
        if may_see → if not may_see
    all_seen: You marked all keys that a query may see: mark the k best.
        return chosen → return may_see.copy()
    earliest: You kept the first k keys, whatever their scores.
        -scores[b, 0, t, s], s → s, s
    own_added: You kept a token's own key beside the k best: it counts as any other.
        best: → {*best, *seen[-1:]}:
    above_the_last: You kept what scores above the k-th best: that one stays, too.
        best: → [x for x in best if scores[b, 0, t, x] > scores[b, 0, t, best[-1]]]:
    two_always: You always kept two keys: k says how many.
        [:top_k] → [:2]
    by_size: You chose by the size of the scores, without their sign.
        -scores[b, 0, t, s], s → -abs(scores[b, 0, t, s]), s
    of_first_text: You chose for all texts as for the first.
        -scores[b, 0, t, s], s → -scores[0, 0, t, s], s
    mask_of_first_text: You hid the same keys in all texts: a mask may have a row each.
        if may_see[b, 0, t, s]] → if may_see[0, 0, t, s]]
    one_left_out: You chose all but one, where a query sees no more than k keys.
        [:top_k] → [: top_k if top_k < len(seen) else len(seen) - 1]
    scores_returned: You return scores: say True or False of each key.
        return chosen → return np.where(chosen, scores, -np.inf)
    numbers_of_keys: You return the numbers of the keys: say True or False of each.
        return chosen → return np.argsort(
            -np.where(chosen, scores, -np.inf), -1, kind="stable")[..., :top_k]
    """,
    properties=("state", "inputs", "layout"),
)
def choose_keys(scores: Array, top_k: int, attn_mask: Array) -> Array:
    """Mark for each query the k keys that it wants most of those that it may see."""
    chosen = np.zeros(scores.shape, bool)
    may_see = np.broadcast_to(attn_mask, scores.shape)
    for b, t in np.ndindex(scores.shape[0], scores.shape[2]):
        seen = [s for s in range(scores.shape[3]) if may_see[b, 0, t, s]]
        best = sorted(seen, key=lambda s: (-scores[b, 0, t, s], s))[:top_k]
        for s in best:
            chosen[b, 0, t, s] = True
    return chosen
