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
    # long-context#indexer
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


@Spec(
    Case("one of two keys", (draw(1, 1, 2, 2), 1, causal_mask(2, 2))),
    Case("two of five, causal", (draw(2, 1, 5, 5), 2, causal_mask(5, 5))),
    Case("equal scores", (_OFTEN, 3, causal_mask(5, 5))),
    Case("more than there are", (draw(1, 1, 3, 4), 7, causal_mask(3, 4))),
    wrong="""
    # long-context#the-best-keys-chosen-before-the-mask
    before_mask: You chose the best of all keys, and hid some of them: choose of those
        that a query may see.
        if may_see[b, 0, t, s]] → ]
        best: → [x for x in best if may_see[b, 0, t, x]]:
    mask_ignored: You let a query choose keys that it may not see.
        if may_see[b, 0, t, s]] → ]
    # long-context#indexer
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
