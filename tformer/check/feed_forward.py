"""Specs of the part between attentions: SwiGLU, and a mixture of experts."""

from collections.abc import Callable, Sequence
from math import erf, sqrt

import numpy as np

from tformer.check.outcomes import Expert
from tformer.check.spec import Array, Case, Spec, draw


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def _gelu(z: Array) -> Array:
    return z * np.array([1 + erf(x / sqrt(2)) for x in z]) / 2


def _network(D: int, F: int) -> tuple[Array, Array, Array]:
    return draw(F, D), draw(F, D, seed=1), draw(D, F, seed=2)


@Spec(
    Case("one vector", (draw(2), *_network(2, 3))),
    Case("as wide inside", (draw(2, 3), *_network(3, 3))),
    Case("three axes", (2 * draw(2, 3, 5), *_network(5, 7))),
    Case("four axes", (draw(2, 1, 3, 2), *_network(2, 3))),
    Case("rows", (draw(5, 4), *_network(4, 6))),
    wrong="""
    # block-today#gate-and-up-change-places-or-are-interleaved
    gate_and_up_swapped: You took silu of the up projection: it is taken of the gate.
        _sigmoid(gate) → _sigmoid(up)
    halves_swapped: You sent x through w_up for the gate twice.
        gate, up = w_gate → gate, up = w_up
    gate_alone: You left w_up out: the gate must be multiplied by it.
        * _sigmoid(gate) * up → * _sigmoid(gate)
    # block-today#the-formula
    added: You added gate and up; they are multiplied.
        * _sigmoid(gate) * up → * _sigmoid(gate) + up
    no_activation: You multiplied gate and up without silu between.
        * _sigmoid(gate) * up → * up
    sigmoid: You took the sigmoid of the gate; silu is z · sigmoid(z).
        gate * _sigmoid(gate) * up → _sigmoid(gate) * up
    both_active: You took silu of both; up stays as it is.
        * up → * up * _sigmoid(up)
    after_product: You took silu of the product; it is taken of the gate alone.
        gate * _sigmoid(gate) * up → gate * up * _sigmoid(gate * up)
    other_sign: You took z · sigmoid(-z).
        _sigmoid(gate) → _sigmoid(-gate)
    exp_sign: You divided by 1 - exp(-z); silu divides by 1 + exp(-z).
        _sigmoid(gate) → (1 / (1 - np.exp(-gate)))
    plain_exp: You wrote z / (1 + exp(z)) · exp(-z); silu is z / (1 + exp(-z)).
        _sigmoid(gate) → (_sigmoid(-gate) * np.exp(-gate))
    relu: You took relu of the gate: that is ReGLU.
        gate * _sigmoid(gate) → np.maximum(gate, 0)
    tanh: You took tanh of the gate, not silu.
        gate * _sigmoid(gate) → np.tanh(gate)
    quick_gelu: You took z · sigmoid(1.702 z), which is near GELU; silu has no factor.
        _sigmoid(gate) → _sigmoid(1.702 * gate)
    softmax: You took the softmax of the gate, not silu.
        gate * _sigmoid(gate) → np.exp(gate) / np.exp(gate).sum()
    no_gate: You took silu of up and left the gate out.
        gate * _sigmoid(gate) * up → up * _sigmoid(up)
    residual: You added x; that is done outside.
        = w_down → = x[at] + w_down
    not_transposed: You multiplied by W; weights are (out, in), so it is x Wᵀ.
        = w_gate @ x[at], → = x[at] @ w_gate,
        w_up @ x[at] → x[at] @ w_up
        w_down @ → w_down.T @
    # block-today#the-other-gelu
    gelu: You took GELU of the gate: that is GEGLU.
        gate * _sigmoid(gate) → _gelu(gate)
    gelu_tanh: You took the tanh form of GELU of the gate: that is GEGLU.
        gate * _sigmoid(gate) → gate * _sigmoid(sqrt(8 / 3.141592653589793) * gate
        * up) → * (1 + 0.044715 * gate**2)) * up)
    """,
)
def swiglu(x: Array, w_gate: Array, w_up: Array, w_down: Array) -> Array:
    """Feed one vector forward at a time."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        gate, up = w_gate @ x[at], w_up @ x[at]
        output[at] = w_down @ (gate * _sigmoid(gate) * up)
    return output


def _mixture(N: int, D: int, E: int, seed: int = 0) -> tuple[object, ...]:
    experts = [
        Expert(draw(3, D, seed=seed + i), draw(D, 3, seed=seed + E + i))
        for i in range(E)
    ]
    return draw(N, D, seed=seed), draw(E, D, seed=seed), experts


@Spec(
    Case("one token, one of two experts", (*_mixture(1, 2, 2), 1)),
    Case("one token, two of three", (*_mixture(1, 2, 3), 2)),
    Case("one of three", (*_mixture(5, 4, 3), 1)),
    Case("two of four", (*_mixture(7, 5, 4), 2)),
    Case("three of five", (*_mixture(6, 3, 5), 3)),
    Case("all of three", (*_mixture(4, 3, 3), 3)),
    Case("two tokens, two of five", (*_mixture(2, 3, 5), 2)),
    wrong="""
    # experts#the-formula
    over_all: Your weights are shares of all experts; those of the k chosen sum to 1.
        sum(powers[e] for e in chosen) → sum(powers)
    unweighted: You added the experts up without weights.
        powers[e] / total * → 1.0 *
    averaged: You took the mean of the k experts; they have weights.
        powers[e] / total * → 1 / k *
    logits_as_weights: You weighted by the logits; take their softmax.
        powers[e] / total * → scores[e] *
    divided_logits: You divided the logits by their sum; take their softmax.
        powers[e] / total * → scores[e] / sum(scores[j] for j in chosen) *
    sigmoid: You weighted by sigmoids of the logits; take their softmax.
        powers[e] / total * → 1 / (1 + np.exp(-scores[e])) *
    divided_sigmoids: You divided sigmoids by their sum; take the softmax of the logits.
        np.exp(scores - max(scores)) → 1 / (1 + np.exp(-scores))
    twice_softmax: You took the softmax of probabilities; take that of the logits.
        np.exp(scores - max(scores)) → _twice(scores)
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
        powers = np.exp(scores - max(scores)) → powers = _over_tokens(x @ router.T)[n]
        powers[e] / total * → powers[e] *
    over_tokens_divided: You took the softmax over the tokens, and divided by the sum.
        powers = np.exp(scores - max(scores)) → powers = _over_tokens(x @ router.T)[n]
    one_choice: You chose experts for all tokens at once; each token has its own.
        key=lambda e: -scores[e] → key=lambda e: -sum(x @ router[e])
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
        powers = np.exp(scores - max(scores))
        total = sum(powers[e] for e in chosen)
        for e in chosen:
            made = experts[e](x[n : n + 1])[0]
            output[n] += powers[e] / total * made
    return output


def _over_tokens(logits: Array) -> Array:
    """For a mistake: the softmax over the wrong axis."""
    powers = np.exp(logits - logits.max(0))
    return np.asarray(powers / powers.sum(0))


def _twice(logits: Array) -> Array:
    """For a mistake: exp of a softmax."""
    powers = np.exp(logits - logits.max())
    return np.exp(powers / powers.sum())


def _all_asked(
    x: Array, router: Array, experts: Sequence[Callable[[Array], Array]], k: int
) -> Array:
    """For a mistake: ask every expert, with the tokens that chose it."""
    logits = x @ router.T
    chosen = logits >= np.sort(logits, 1)[:, [-k]]
    for e, expert in enumerate(experts):
        expert(x[chosen[:, e]])
    return np.zeros(x.shape)
