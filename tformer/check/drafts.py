"""The spec of speculative decoding: which drafted tokens stay."""

import numpy as np

from tformer.check.spec import Array, Case, Spec


def _drawn(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), shape[:-1])


def _distributions(seed: int) -> tuple[Array, Array]:
    return _drawn(4, 5, seed=seed), _drawn(3, 5, seed=100 + seed)


def _product(p: Array, q: Array, draft: Array) -> float:
    """For a mistake: the product of p / q over tokens."""
    return float(np.prod([p[i, t] / q[i, t] for i, t in enumerate(draft.tolist())]))


_DRAFTED = (_drawn(4, 5, seed=1), _drawn(3, 5, seed=2), np.array([1, 4, 2]))


@Spec(
    *(
        Case(f"chances {u}", (*_DRAFTED, np.array(u)))
        for u in (
            *((0.0, 0.0, 0.0), (0.999, 0.999, 0.999), (0.5, 0.5, 0.5)),
            *((0.0, 0.6, 0.2), (0.1, 0.1, 0.97)),
        )
    ),
    *(  # which `separating` has found
        Case(f"drawn {seed}", (*_distributions(seed), np.array(draft), np.array(u)))
        for seed, draft, u in (
            (20, (4, 1, 1), (0.12, 0.52, 0.41)),
            (12, (1, 4, 3), (0.54, 0.11, 0.26)),
            (8, (3, 1, 1), (0.32, 0.79, 0.87)),
            (1, (4, 4, 2), (0.83, 0.41, 0.55)),
        )
    ),
    wrong="""
    # faster-writing#the-formula
    likelier_only: You keep a token only if p is above q.
        u[i] < min(1.0, p[i, t] / q[i, t]) → p[i, t] >= q[i, t]
    comparison_turned: You reject where u is below p / q: there you accept.
        u[i] < min → u[i] >= min
    all_counted: You count what stays after a rejection, too: it ends the text.
        stays.index(False) if False in stays else len(draft) → sum(stays)
    all_counted_to_the_end: You count what stays after a rejection, too, and take the
        last row of p: the first rejection ends the text.
        stays.index(False) if False in stays else len(draft) → sum(stays)
        return n, left / sum(left) → return n, p[-1]
    last_unseen: You never look at the last drafted token.
        stays = [u → stays = [i == len(draft) - 1 or u
    one_less_if_all: Where all stay, all are counted; you count one less.
        return n, p[n] → return n - 1, p[n]
    second_always: You stop after the first token that stays.
        if False in stays else len(draft) → if False in stays[:1] else 1
    tokens_returned: You return the tokens that stay: return how many.
        return n, left → return draft[:n], left
        return n, p[n] → return draft[:n], p[n]
    first_alone: You look at the first drafted token alone.
        if False in stays else → if not stays[0] else
    never_rejected: You accept every drafted token.
        stays.index(False) if False in stays else len(draft) → len(draft)
    always_rejected: You accept no drafted token.
        stays.index(False) if False in stays else len(draft) → 0
    best_token: You accept a token if it is the model's likeliest.
        u[i] < min(1.0, p[i, t] / q[i, t]) → t == np.argmax(p[i])
    other_side: You accept where 1 - u is below p / q: it is u.
        u[i] < min → 1 - u[i] < min
    by_p: You accept with the probability p; it is p / q.
        p[i, t] / q[i, t] → p[i, t]
    by_q: You accept with the probability q; it is p / q.
        p[i, t] / q[i, t] → q[i, t]
    difference: You accept with the probability 1 + p - q; it is p / q.
        p[i, t] / q[i, t] → 1 + p[i, t] - q[i, t]
    row_after: You compare with the model's next row.
        p[i, t] / → p[i + 1, t] /
    product_of_ratios: You multiply p / q of all tokens so far: each is asked alone.
        min(1.0, p[i, t] / q[i, t]) → min(1.0, _product(p, q, draft[: i + 1]))
    one_number: You take one random number for all tokens: each has its own.
        u[i] < min → u[0] < min
    one_more_counted: You count the new token as well.
        return n, left → return n + 1, left
        return n, p → return n + 1, p
    one_more_if_rejected: You count the rejected token, too.
        return n, left → return n + 1, left
    absolute: You draw from |p - q|; it is (p - q)₊.
        np.maximum(p[n] - q[n], 0.0) → abs(p[n] - q[n])
    not_cut: You draw from p - q, which is below 0 at places; cut it off at 0.
        np.maximum(p[n] - q[n], 0.0) → (p[n] - q[n])
    q_minus_p: You draw from (q - p)₊; it is (p - q)₊.
        p[n] - q[n] → q[n] - p[n]
    drawn_from_q: After a rejection you draw from q; it is (p - q)₊.
        np.maximum(p[n] - q[n], 0.0) → q[n]
    token_hidden: After a rejection you only take the token out of p; it is (p - q)₊.
        np.maximum(p[n] - q[n], 0.0) → p[n] * (np.arange(len(p[n])) != draft[n])
    softmax: You made (p - q)₊ a distribution by softmax: divide it by its sum.
        left / sum(left) → np.exp(left) / sum(np.exp(left))
    rest_of_p: After a rejection you keep p where it is above q: it is p - q there.
        np.maximum(p[n] - q[n], 0.0) → p[n] * (p[n] > q[n])
    row_before: After a rejection you take the row before.
        np.maximum(p[n] - q[n], 0.0) →
            np.maximum(p[max(n - 1, 0)] - q[max(n - 1, 0)], 0.0)
    last_row: After a rejection you take the last row.
        np.maximum(p[n] - q[n], 0.0) → np.maximum(p[len(q) - 1] - q[-1], 0.0)
    first_row: After a rejection you take the first row.
        np.maximum(p[n] - q[n], 0.0) → np.maximum(p[0] - q[0], 0.0)
    rest_of_last: Where all stay you take (p - q)₊; the next is drawn from p's last row.
        if n == len(draft) → if False
        p[n] - q[n] → p[n] - q[min(n, len(q) - 1)]
    rest_of_last_draft: Where all stay you take the last draft's (p - q)₊; the next is
        drawn from p's last row.
        if n == len(draft) → if False
        p[n] - q[n] → p[min(n, len(q) - 1)] - q[min(n, len(q) - 1)]
    drawn_from_next: After a rejection you draw from the model's row after.
        np.maximum(p[n] - q[n], 0.0) → p[n + 1]
    not_cut_by_sizes: You draw from p - q, which is below 0 at places; cut it off at 0.
        np.maximum(p[n] - q[n], 0.0) → (p[n] - q[n])
        left / sum(left) → left / sum(abs(left))
    rest_of_next: After a rejection you take the row after.
        np.maximum(p[n] - q[n], 0.0) →
            np.maximum(p[min(n + 1, len(q) - 1)] - q[min(n + 1, len(q) - 1)], 0.0)
    bonus_of_q: Where all stay, the next is drawn from p's last row, not from q's.
        return n, p[n] → return n, q[-1]
    likeliest: You return a token; return what it is drawn from.
        left / sum(left) → np.argmax(left)
        return n, p[n] → return n, np.argmax(p[n])
    inverted: You accept with q / p; it is p / q.
        p[i, t] / q[i, t] → q[i, t] / p[i, t]
    drawn_from_p: After a rejection you draw from p; it is (p - q)₊.
        np.maximum(p[n] - q[n], 0.0) → p[n]
    not_scaled: You did not divide (p - q)₊ by its sum.
        left / sum(left) → left
    bonus_forgotten: Where all stay, the next is drawn from the last row of p.
        return n, p[n] → return n, p[n - 1]
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
    stays = [u[i] < min(1.0, p[i, t] / q[i, t]) for i, t in enumerate(draft.tolist())]
    n = stays.index(False) if False in stays else len(draft)
    if n == len(draft):
        return n, p[n]
    left = np.maximum(p[n] - q[n], 0.0)
    return n, left / sum(left)
