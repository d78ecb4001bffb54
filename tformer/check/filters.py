"""Specs of what sampling does to logits before it draws: temperature and filters."""

from math import exp

import numpy as np

from tformer.check.spec import Case, Spec, mistakes

Array = np.ndarray


def top_k(logits: Array, k: int) -> Array:
    """Hide what is smaller than the k-th largest."""
    output = np.full(logits.shape, -np.inf)
    for b, row in enumerate(logits):
        least = sorted(row, reverse=True)[k - 1]
        stays = row >= least
        output[b, stays] = row[stays]
    return output


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


def temperature(logits: Array, temperature: float) -> Array:
    """Divide, then take the softmax."""
    output = np.zeros(logits.shape)
    for b, row in enumerate(logits):
        powers = np.exp((row - max(row)) / temperature)
        output[b] = powers / sum(powers)
    return output


_SHARES = (
    (0.4, 0.05, 0.3, 0.15, 0.1),
    (0.02, 0.9, 0.03, 0.04, 0.01),
    (0.2, 0.1, 0.3, 0.25, 0.15),
)
_LOGITS = np.log(_SHARES)
_FILTER = ("state", "inputs", "layout", "dtype")
TOP_K = Spec(
    "top_k",
    "top_k(logits, k)",
    tuple(Case(f"k = {k}", (_LOGITS, k)) for k in (1, 2, 3, 5)),
    top_k,
    mistakes(
        top_k,
        """
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
    ),
    properties=_FILTER,
)
TOP_P = Spec(
    "top_p",
    "top_p(logits, p)",
    tuple(Case(f"p = {p}", (_LOGITS, p)) for p in (1e-9, 0.35, 0.62, 0.93, 1.0)),
    top_p,
    mistakes(
        top_p,
        """
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
    ),
    properties=_FILTER,
)
TEMPERATURE = Spec(
    "temperature",
    "temperature(logits, temperature), the probabilities",
    tuple(Case(f"temperature {t}", (_LOGITS, t)) for t in (0.5, 1.0, 3.0, 1e-4)),
    temperature,
    mistakes(
        temperature,
        """
        # decoding#the-formula
        multiplied: You multiplied by the temperature.
            / temperature → * temperature
        after_softmax: You divided probabilities and not logits.
            (row - max(row)) / temperature → row - max(row)
            powers / sum(powers) → powers / sum(powers) / temperature
        """,
    ),
    properties=("state", "inputs", "layout"),
)
