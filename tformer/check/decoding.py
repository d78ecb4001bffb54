"""Specs of decoding: from logits to probabilities, and from these to tokens."""

from collections.abc import Callable, Iterable
from math import exp

import numpy as np

from tformer.check.outcomes import Table
from tformer.check.spec import Array, Case, Spec

Scores = Callable[[list[int]], Iterable[float]]  # of ids: what comes next
_SHARES = (
    (0.4, 0.05, 0.3, 0.15, 0.1),
    (0.02, 0.9, 0.03, 0.04, 0.01),
    (0.2, 0.1, 0.3, 0.25, 0.15),
)
_LOGITS = np.log(_SHARES)
_FILTER = ("state", "inputs", "layout", "dtype")


@Spec(
    *(Case(f"k = {k}", (_LOGITS, k)) for k in (1, 2, 3, 5)),
    wrong="""
    # decoding#the-code
    hidden_as_0: You gave hidden tokens the logit 0: exp(0) is 1.
        -np.inf → 0.0
    smallest: You kept the k smallest.
        reverse=True → reverse=False
        stays = row >= least → stays = row <= least
    all_rows: You took the k-th largest of all rows.
        sorted(row, → sorted(logits.ravel(),
    one_more: You kept one token too many.
        [k - 1] → [min(k, len(row) - 1)]
    """,
    properties=_FILTER,
)
def top_k(logits: Array, k: int) -> Array:
    """Hide what is smaller than the k-th largest."""
    output = np.full(logits.shape, -np.inf)
    for b, row in enumerate(logits):
        least = sorted(row, reverse=True)[k - 1]
        stays = row >= least
        output[b, stays] = row[stays]
    return output


@Spec(
    *(Case(f"p = {p}", (_LOGITS, p)) for p in (1e-9, 0.35, 0.62, 0.93, 1.0)),
    wrong="""
    # decoding#the-code
    one_too_few: You left out the token that reaches p.
        if total < p → if total + share <= p
    one_too_many: You kept one token more than reaches p.
        if total < p → if total - (share if total else 0) < p
    by_share: You kept each token with a probability of p or more.
        if total < p → if share >= p
    not_put_back: You left the logits sorted.
        output[b, token] → output[b, order.index(token)]
    """,
    properties=_FILTER,
)
def top_p(logits: Array, p: float) -> Array:
    """Add up the likeliest tokens until they have p."""
    output = np.full(logits.shape, -np.inf)
    for b, row in enumerate(logits):
        powers = [exp(x - max(row)) for x in row]
        order, total = sorted(range(len(row)), key=lambda i: -row[i]), 0.0
        for token in order:
            share = powers[token] / sum(powers)
            if total < p:
                output[b, token] = row[token]
            total += share
    return output


@Spec(
    *(Case(f"temperature {t}", (_LOGITS, t)) for t in (0.5, 1.0, 3.0, 1e-4)),
    wrong="""
    # decoding#the-formula
    multiplied: You multiplied by the temperature.
        / temperature → * temperature
    after_softmax: You divided probabilities and not logits.
        (row - max(row)) / temperature → row - max(row)
        powers / sum(powers) → powers / sum(powers) / temperature
    """,
    properties=("state", "inputs", "layout"),
)
def temperature(logits: Array, temperature: float) -> Array:
    """Divide, then take the softmax."""
    output = np.zeros(logits.shape)
    for b, row in enumerate(logits):
        powers = np.exp((row - max(row)) / temperature)
        output[b] = powers / sum(powers)
    return output


def _table(*shape: int, seed: int) -> Table:
    logits = 1.5 * np.random.default_rng(seed).normal(size=shape)
    return Table(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))


_TABLES = [_table(6, 5, 5, seed=seed) for seed in range(4)]


@Spec(
    *(
        Case(f"a table, {max_len} tokens at most, {i}", (table, 1, 2, max_len))
        for i, table in enumerate(_TABLES)
        for max_len in (1, 3, 6)
    ),
    wrong="""
    # decoding#the-formula
    least: You took the least likely token.
        max(shares) → min(shares)
    goes_on: You go on after the end token.
        break → continue
    without_end: You leave the end token out of what you return.
        return ids[1:] → return [token for token in ids[1:] if token != eos]
    with_bos: You return the start token too.
        return ids[1:] → return ids
    """,
)
def greedy(next_log_probs: Scores, bos: int, eos: int, max_len: int) -> list[int]:
    """Append the likeliest token until the end token."""
    ids = [bos]
    for _ in range(max_len):
        shares = [float(x) for x in next_log_probs(ids)]
        ids.append(shares.index(max(shares)))
        if ids[-1] == eos:
            break
    return ids[1:]


@Spec(
    *(
        Case(f"{K} beams, α = {alpha}, table {i}", (table, 1, 2, K, max_len, alpha))
        for i, table in enumerate(_TABLES)
        for K, max_len, alpha in (
            *((1, 5, 0.0), (2, 5, 0.0), (3, 5, 0.6)),
            *((125, 4, 0.0), (125, 4, 1.0), (125, 4, -0.7)),
        )
    ),
    wrong="""
    # decoding#the-formula
    greedy: You followed the best beam alone.
        live = live[:num_beams] → live = live[:1]
        candidates[:num_beams] → candidates[:1]
    no_penalty: You left out the penalty of length.
        total / divisor → total
    multiplied: You multiplied by the penalty: sums are below 0, so divide.
        total / divisor → total * divisor
    by_length: You divided by length^α; it is ((5 + length) / 6)^α.
        ((5 + length) / 6) → length
    newest_only: You compare the newest token's log-probability; it is the sum.
        total + float(share) → float(share)
    first_ended: You stop at the first beam that ends; a longer one can be better.
        live = live[:num_beams] → live = [] if ended else live[:num_beams]
    """,
)
def beam(
    next_log_probs: Scores,
    bos: int,
    eos: int,
    num_beams: int,
    max_len: int,
    length_penalty: float,
) -> list[int]:
    """Search in lists, without stopping early, for the best log P / divisor."""
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for length in range(1, max_len + 1):
        candidates = [
            (total + float(share), [*ids, token])
            for total, ids in live
            for token, share in enumerate(next_log_probs([bos, *ids]))
        ]
        candidates.sort(key=lambda each: -each[0])
        divisor = ((5 + length) / 6) ** length_penalty
        for total, ids in candidates[:num_beams]:
            if ids[-1] == eos or length == max_len:
                ended.append((total / divisor, ids))
        live = [each for each in candidates if each[1][-1] != eos]
        live = live[:num_beams]
    return max(ended)[1]


def _drawn(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


_DRAFTED = (_drawn(4, 5, seed=1), _drawn(3, 5, seed=2), np.array([1, 4, 2]))


@Spec(
    *(
        Case(f"chances {u}", (*_DRAFTED, np.array(u)))
        for u in (
            *((0.0, 0.0, 0.0), (0.999, 0.999, 0.999), (0.5, 0.5, 0.5)),
            *((0.0, 0.6, 0.2), (0.1, 0.1, 0.97)),
        )
    ),
    wrong="""
    # faster-writing#the-formula
    likelier_only: You keep a token only if p is above q.
        u[n] >= chance → chance < 1
    inverted: You accept with q / p; it is p / q.
        p[n, token] / q[n, token] → q[n, token] / p[n, token]
    drawn_from_p: After a rejection you draw from p; it is (p - q)₊.
        np.maximum(p[n] - q[n], 0.0) → p[n]
    not_scaled: You did not divide (p - q)₊ by its sum.
        left / sum(left) → left
    bonus_forgotten: Where all stay, the next is drawn from the last row of p.
        p[len(draft)] → p[len(draft) - 1]
    """,
    properties=("state", "inputs", "layout", "precision"),
)
def speculative(p: Array, q: Array, draft: Array, u: Array) -> tuple[int, Array]:
    """Count the drafted tokens that stay; say from what the next is drawn.

    Args:
        p: (K + 1, V), the model's probabilities.
        q: (K, V), the draft's.
        draft: (K,), the tokens that it proposes.
        u: (K,), uniform in [0, 1): a token stays if u < min(1, p / q).
    """
    for n, token in enumerate(draft.tolist()):
        chance = min(1.0, p[n, token] / q[n, token])
        if u[n] >= chance:
            left = np.maximum(p[n] - q[n], 0.0)
            return n, left / sum(left)
    return len(draft), p[len(draft)]
