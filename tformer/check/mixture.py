"""The spec of a mixture of experts."""

from collections.abc import Callable, Sequence

import numpy as np

from tformer.check.outcomes import Expert
from tformer.check.spec import Array, Case, Spec, draw


def _mixture(N: int, D: int, E: int, seed: int = 0) -> tuple[object, ...]:
    experts = [
        Expert(draw(3, D, seed=seed + i), draw(D, 3, seed=seed + E + i))
        for i in range(E)
    ]
    return draw(N, D, seed=seed), draw(E, D, seed=seed), experts


def _large(N: int, D: int, E: int) -> tuple[object, ...]:
    x, router, experts = _mixture(N, D, E, seed=4)
    return x, 1000 * np.asarray(router), experts


@Spec(
    Case("one token, one of two experts", (*_mixture(1, 2, 2), 1)),
    Case("one token, two of three", (*_mixture(1, 2, 3), 2)),
    Case("one of three", (*_mixture(5, 4, 3), 1)),
    Case("two of four", (*_mixture(7, 5, 4), 2)),
    Case("three of five", (*_mixture(6, 3, 5), 3)),
    Case("all of three", (*_mixture(4, 3, 3), 3)),
    Case("two tokens, two of five", (*_mixture(2, 3, 5), 2)),
    Case("large logits", (*_large(3, 2, 3), 2)),
    wrong="""
    # experts#the-formula
    over_all: Your weights are shares of all experts; those of the k chosen sum to 1.
        sum(powers[e] for e in chosen) → sum(powers)
    unweighted: You added the experts up without weights.
        powers[e] / total * → 1.0 *
    not_divided: You weighted by exp of the logits; divide by the sum over the k.
        powers[e] / total * → powers[e] *
    two_always: You always take two experts: k says how many.
        [:k] → [:2]
    one_fewer: You used one expert fewer than k.
        [:k] → [: max(k - 1, 1)]
    last_left_out: You never ask the last expert.
        made = experts[e](x[n : n + 1])[0] →
            made = experts[e](x[n : n + 1])[0] * (e < len(experts) - 1)
    next_expert: You asked the expert after the chosen one: they are counted from 0.
        experts[e](x → experts[(e + 1) % len(experts)](x
    previous_expert: You asked the expert before the chosen one.
        experts[e](x → experts[e - 1](x
    averaged: You took the mean of the k experts; they have weights.
        powers[e] / total * → 1 / k *
    logits_as_weights: You weighted by the logits; take their softmax.
        powers[e] / total * → scores[e] *
    divided_logits: You divided the logits by their sum; take their softmax.
        powers[e] / total * → scores[e] / sum(scores[j] for j in chosen) *
    sigmoid: You weighted by sigmoids of the logits; take their softmax.
        powers[e] / total * → 1 / (1 + np.exp(-scores[e])) *
    divided_sigmoids: You divided sigmoids by their sum; take the softmax of the logits.
        np.exp(scores - top) → 1 / (1 + np.exp(-scores))
    twice_softmax: You took the softmax of probabilities; take that of the logits.
        np.exp(scores - top) → _twice(scores)
    scaled_logits: You divided the logits by √D: that is for attention.
        scores = router @ x[n] → scores = router @ x[n] / np.sqrt(len(x[n]))
    router_reshaped: You multiplied by the router as it is, or gave it another shape: it
        is (E, D), so transpose it.
        scores = router @ x[n] → scores = x[n] @ router.reshape(-1, len(router))
    over_tokens_of_chosen: You took the softmax of the k logits over the tokens.
        powers[e] / total * → _of_places(x @ router.T, k)[n, chosen.index(e)] *
    late_experts: Weights go from best to least, and experts by their number.
        experts[e](x → experts[sorted(chosen)[chosen.index(e)]](x
    last_number_only: You overwrote: what stays is the expert of the largest number.
        for e in chosen: → for e in [max(chosen)]:
    scaled_by_k: You multiplied the result by k.
        powers[e] / total * → k * powers[e] / total *
    divided_by_k: You divided the result by k.
        powers[e] / total * → powers[e] / total / k *
    overflow: You took exp of the logits as they are: subtract the largest.
        np.exp(scores - top) → np.exp(scores)
    ones_for_one: With k = 1 the weight is 1; you took the share of all.
        total = sum(powers[e] for e in chosen) →
            total = sum(powers[e] for e in chosen) if k > 1 else sum(powers)
    first_only: You used the best expert alone, whatever k is.
        [:k] → [:1]
    all_experts: You used all experts; a token has its k best.
        [:k] → [:]
    one_more: You used one expert more than k.
        [:k] → [: k + 1]
    smallest: You chose the experts with the smallest logits.
        lambda e: -scores[e] → lambda e: scores[e]
    first_experts: You took the first k experts, not the best.
        sorted(range(len(experts)), key=lambda e: -scores[e]) → [*range(len(experts))]
    by_place: You took expert 0 for the best, 1 for the next: ask for its index.
        experts[e](x → experts[chosen.index(e)](x
    weights_swapped: Your weights go to the experts in another order than you chose.
        powers[e] / total → powers[chosen[-1 - chosen.index(e)]] / total
    input_weighted: You weighted what goes into an expert; weight what comes out.
        powers[e] / total * made → experts[e](powers[e] / total * x[n : n + 1])[0]
    last_only: You kept the last expert's result; add all k up.
        output[n] += → output[n] =
    over_tokens: You took the softmax over the tokens, not over the experts.
        powers = np.exp(scores - top) → powers = _over_tokens(x @ router.T)[n]
        powers[e] / total * → powers[e] *
    over_tokens_divided: You took the softmax over the tokens, and divided by the sum.
        powers = np.exp(scores - top) → powers = _over_tokens(x @ router.T)[n]
    others_at_0: You gave the other experts the logit 0: exp(0) is 1, so leave them out.
        total = sum(powers[e] for e in chosen) → total = sum(
            powers[e] for e in chosen) + (len(scores) - k) * np.exp(min(-top, 700))
    over_tokens_first: You took the softmax over the tokens, and chose experts by it.
        scores = router @ x[n] → scores = _of_tokens(x @ router.T)[n]
    divided_by_all: You divided by the sum over the whole batch: each token has its own.
        total = sum(powers[e] for e in chosen) →
            powers, total = powers / sum(powers), _chosen_of_all(x @ router.T, k)
    one_choice: You chose experts for all tokens at once; each token has its own.
        key=lambda e: -scores[e] → key=lambda e: -sum(x @ router[e])
    expert_choice: Your experts choose tokens, as many as N · k / E each; here a token
        chooses its experts.
        output = np.zeros(x.shape) → return _experts_choose(x, router, experts, k)
    capacity: You give an expert N · k / E tokens at most: no token is dropped here.
        for e in chosen: → for e in _left(x @ router.T, k, n, chosen):
    residual: You added x; that is done outside.
        output = np.zeros(x.shape) → output = x.copy()
    no_rows: You call an expert that no token chose: it takes n ≥ 1 rows.
        output = np.zeros(x.shape) → output = _all_asked(x, router, experts, k)
    one_vector: You give an expert a vector (D,); it takes rows (n, D).
        x[n : n + 1])[0] → x[n])
    """,
    properties=("state", "inputs", "layout", "dtype", "gradient"),
)
def moe(
    x: Array, router: Array, experts: Sequence[Callable[[Array], Array]], k: int
) -> Array:
    """Ask token by token its k best experts."""
    output = np.zeros(x.shape)
    for n in range(len(x)):
        scores = router @ x[n]
        chosen = sorted(range(len(experts)), key=lambda e: -scores[e])[:k]
        top = max(scores[e] for e in chosen)
        powers = np.exp(scores - top)
        total = sum(powers[e] for e in chosen)
        for e in chosen:
            made = experts[e](x[n : n + 1])[0]
            output[n] += powers[e] / total * made
    return output


def _over_tokens(logits: Array) -> Array:
    """For a mistake: the softmax over the wrong axis."""
    powers = np.exp(logits - logits.max(0))
    return np.asarray(powers / powers.sum(0))


def _of_places(logits: Array, k: int) -> Array:
    """For a mistake: the softmax over the tokens of the k largest, (N, k)."""
    return _over_tokens(-np.sort(-logits, 1)[:, :k])


def _of_tokens(logits: Array) -> Array:
    """For a mistake: logarithms of the softmax over the tokens."""
    return np.log(np.maximum(_over_tokens(logits), 1e-300))


def _chosen_of_all(logits: Array, k: int) -> float:
    """For a mistake: the sum of the shares that all tokens give to their k experts."""
    shares = _over_tokens(logits.T).T
    return float(np.sort(shares, 1)[:, -k:].sum())


def _twice(logits: Array) -> Array:
    """For a mistake: exp of a softmax."""
    powers = np.exp(logits - logits.max())
    return np.exp(powers / powers.sum())


def _experts_choose(
    x: Array, router: Array, experts: Sequence[Callable[[Array], Array]], k: int
) -> Array:
    """For a mistake: each expert takes the tokens that it weighs most."""
    shares, output = _over_tokens(router @ x.T).T, np.zeros(x.shape)
    most = min(len(x), max(1, len(x) * k // len(experts)))
    for e, expert in enumerate(experts):
        rows = np.argsort(-shares[:, e])[:most]
        output[rows] += shares[rows, e, None] * expert(x[rows])
    return output


def _left(logits: Array, k: int, n: int, chosen: list[int]) -> list[int]:
    """For a mistake: of the chosen experts those that have room for token n."""
    places = np.argsort(-logits, 1)[:, :k]
    most = -(-len(logits) * k // logits.shape[1])
    return [e for e in chosen if (places[:n] == e).sum() < most]


def _all_asked(
    x: Array, router: Array, experts: Sequence[Callable[[Array], Array]], k: int
) -> Array:
    """For a mistake: ask every expert, with the tokens that chose it."""
    logits = x @ router.T
    chosen = logits >= np.sort(logits, 1)[:, [-k]]
    for e, expert in enumerate(experts):
        expert(x[chosen[:, e]])
    return np.zeros(x.shape)
