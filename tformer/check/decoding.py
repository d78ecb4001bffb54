"""Specs of what is done with logits before a token is drawn."""

from math import exp

import numpy as np

from tformer.check.spec import Array, Case, Spec


def _over_rows(logits: Array) -> Array:
    """For a mistake: the softmax over the rows."""
    powers = np.exp(logits - logits.max(0))
    return np.asarray(powers / powers.sum(0))


def _product(powers: list[float], order: list[int], token: int) -> float:
    """For a mistake: the product of the shares down to a token."""
    shares = np.array([powers[i] for i in order]) / sum(powers)
    return float(np.prod(shares[: order.index(token) + 1]))


def _reaching(row: Array, p: float) -> int:
    """For a mistake: how many tokens of a row reach p."""
    powers = np.exp(-np.sort(-row) - row.max())
    return int(((powers / powers.sum()).cumsum() < p).sum()) + 1


def _down(logits: Array) -> Array:
    """For a mistake: shares in falling order, added up over the rows."""
    powers = np.exp(-np.sort(-logits, -1) - logits.max(-1, keepdims=True))
    return np.asarray((powers / powers.sum(-1, keepdims=True)).cumsum(0))


def _next(powers: list[float], order: list[int], token: int) -> float:
    """For a mistake: the share of the token after this one."""
    after = order[order.index(token) + 1 :][:1]
    return sum(powers[i] for i in after) / sum(powers)


def _before(powers: list[float], order: list[int], token: int) -> float:
    """For a mistake: the shares of the two tokens before this one."""
    end = order.index(token)
    return sum(powers[i] for i in order[max(0, end - 2) : end]) / sum(powers)


_SHARES = (
    (0.4, 0.05, 0.3, 0.15, 0.1),
    (0.02, 0.9, 0.03, 0.04, 0.01),
    (0.2, 0.1, 0.3, 0.25, 0.15),
)
_LOGITS = np.log(_SHARES) + np.array([[1.0], [-2.0], [0.5]])  # no log-probabilities
_EQUAL = np.array([[2.0, 2.0, 0.0, 2.0, 1.0]])
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
    one_fewer: You kept one token too few.
        [k - 1] → [max(k - 2, 0)]
    last_hidden: You hid the k-th largest itself.
        stays = row >= least → stays = row > least
    largest_hidden: You hid what is to be kept.
        stays = row >= least → stays = row < least
    of_first_row: You took the k-th largest of the first row for all.
        sorted(row, → sorted(logits[0],
    kept_alone: You return the k largest alone: the others stay, as -inf.
        return output → return -np.sort(-output, -1)[:, :k]
    new_log_probabilities: You return log-probabilities of what is kept: return logits.
        return output →
            return output - np.log(np.exp(output).sum(-1, keepdims=True))
    order_for_ranks: You took argsort's ids for ranks: ranks are the argsort of those.
        stays = row >= least → stays = np.argsort(-row) < k
    zero_times_infinity: You multiplied -inf by 0, which is NaN: choose with `where`.
        = row[stays] → = np.nan
    ids_returned: You return the ids of what is kept: return the logits.
        return output → return np.argsort(-output, -1)[:, :k]
    of_last_row: You took the k-th largest of the last row for all.
        sorted(row, → sorted(logits[-1],
    of_columns: You took the k-th largest over the rows of the batch: it is a row's own.
        sorted(row, reverse=True)[k - 1] →
            np.sort(logits, 0)[::-1][min(k, len(logits)) - 1]
    first_ids: You kept the first k ids; keep the k largest logits.
        stays = row >= least → stays = np.arange(len(row)) < k
    left_sorted: You left the logits sorted.
        return output → return -np.sort(-output, -1)
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
    *(Case(f"p = {p}", (_LOGITS, p)) for p in (1e-9, 0.22, 0.35, 0.62, 0.93, 0.995)),
    Case("one row", (_LOGITS[:1], 0.75)),
    Case("large logits", (_LOGITS * 10 + 800, 0.9)),
    wrong="""
    # decoding#the-code
    one_too_few_not_none: You left out the token that reaches p, but for the likeliest.
        if total < p → if total + share <= p or not total
    ascending: You added up from the unlikeliest token on.
        key=lambda i: -row[i]) → key=lambda i: row[i])
    unlikely_kept: You kept what is to be hidden.
        if total < p → if total >= p
    running_total: Your sum goes on from row to row: begin anew in each.
        , total = sorted( → = sorted(
        key=lambda i: -row[i]), 0.0 →
            key=lambda i: -row[i]); total = total if b else 0.0
    by_number: You added up in the order of the ids: begin with the likeliest.
        sorted(range(len(row)), key=lambda i: -row[i]) → [*range(len(row))]
    best_hidden: You hid the likeliest token.
        if total < p → if 0 < total < p
    one_minus_p: You kept what has the probability 1 - p together.
        if total < p → if total < 1 - p or not total
    one_minus_p_reached: You kept tokens up to 1 - p, without the one that reaches it.
        if total < p → if total + share <= 1 - p or not total
    greedy: You kept the likeliest token alone.
        if total < p → if not total
    two_too_many: You kept two tokens more than reach p.
        if total < p → if total - _before(powers, order, token) < p
    first_row: You decided by the first row for all rows.
        enumerate(logits): → enumerate(np.broadcast_to(logits[:1], logits.shape)):
        = row[token] → = logits[b, token]
    min_p: You kept what has p times the largest probability or more: that is min-p.
        if total < p → if powers[token] >= p
    by_share_or_best: You compared each token's own probability with p: add them up.
        if total < p → if share >= p or not total
    share_of_tokens: You kept a share p of the tokens: add up their probabilities.
        if total < p → if order.index(token) < np.ceil(p * len(row))
    share_of_tokens_down: You kept p times the number of tokens: add up probabilities.
        if total < p → if order.index(token) < max(1, int(p * len(row)))
    shifted_back: You shifted the marks the other way: one token more is hidden.
        if total < p → if total + share + _next(powers, order, token) <= p or not total
    not_divided: You added up exp of the logits: divide by their sum.
        = powers[token] / sum(powers) → = np.exp(row[token])
    over_rows: You took the softmax over the rows: it is over the tokens.
        = powers[token] / sum(powers) → = _over_rows(logits)[b, token]
    over_sorted_rows: You took the softmax of the sorted logits over the rows.
        = powers[token] / sum(powers) →
            = _over_rows(-np.sort(-logits, 1))[b, order.index(token)]
    temperature: You divided the logits by p: that is a temperature.
        return output → return logits / p
    mask: You return which tokens stay: return their logits.
        return output → return np.isfinite(output)
    added_up_logits: You added up the logits as they are; add up probabilities.
        = powers[token] / sum(powers) → = row[token]
    by_logits: You added up logits; add up probabilities.
        powers = [exp(x - max(row)) for x in row] → powers = [*row]
    overflow: You took exp of the logits as they are: subtract the largest.
        exp(x - max(row)) → np.exp(x)
    places_of_mask: You marked tokens in the sorted order, and used the marks unsorted.
        output[b, token] = row[token] → at = order.index(token); output[b, at] = row[at]
    by_wrong_order: You took for a token's place the token at its place: scatter back.
        output[b, token] = row[token] →
            i = order[order[order.index(token)]]; output[b, i] = row[i]
    one_more_shifted: You kept one token more than reaches p.
        if total < p →
            if total - powers[order[order.index(token) - 1]] / sum(powers) < p
    number_of_first_row: You kept as many tokens in each row as in the first.
        if total < p → if order.index(token) < _reaching(logits[0], p)
    two_at_least: You kept two tokens at least: one may be enough.
        if total < p → if total < p or order.index(token) < 2
    multiplied: You multiplied probabilities, or added up their logarithms: add them up.
        if total < p → if not total or _product(powers, order, token) >= p
    shifted_in_place: You shifted the marks in place, and each took the one just
        written: copy them first.
        if total < p → if not total or powers[order[0]] / sum(powers) <= p
    added_over_rows: You added up over the rows of the batch: add up along a row.
        if total < p → if not total or _down(logits)[b, order.index(token) - 1] <= p
    inverse_order: You used gather where scatter puts back: marks go to other tokens.
        output[b, token] = row[token] →
            i = order.index(order.index(token)); output[b, i] = row[i]
    as_0: You gave hidden tokens the logit 0: exp(0) is 1.
        -np.inf → 0.0
    as_1e9: You gave hidden tokens a large negative number: it is -inf here.
        -np.inf → -1e9
    as_lowest: You gave hidden tokens the lowest float: it is -inf here.
        -np.inf → np.finfo(float).min
    log_probabilities: You return log-probabilities; return the logits as they came.
        = row[token] → = np.log(powers[token] / sum(powers))
    new_log_probabilities: You return log-probabilities of what is kept; return logits.
        return output → return output - np.log(np.exp(output).sum(-1, keepdims=True))
    probabilities_of_all: You return probabilities; return the logits as they came.
        = row[token] → = powers[token] / sum(powers)
        -np.inf → 0.0
    one_less: You kept one token less than reaches p, even if none is left.
        if total < p → if total + 2 * share < p
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
