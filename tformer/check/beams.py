"""Specs of texts that are written: greedily, and by beam search."""

from collections.abc import Callable, Iterable

import numpy as np

from tformer.check.outcomes import Table
from tformer.check.spec import Case, Spec

Scores = Callable[[list[int]], Iterable[float]]  # of ids: what comes next


def _table(*shape: int, seed: int) -> Table:
    logits = 1.5 * np.random.default_rng(seed).normal(size=shape)
    return Table(logits - np.log(np.exp(logits).sum(-1, keepdims=True)))


def _four(seed: int) -> Table:
    return _table(6, 4, 4, seed=seed)


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


def _cut(ids: list[int], eos: int) -> list[int]:
    """For a mistake: cut a text after its first end."""
    return ids[: ids.index(eos) + 1] if eos in ids else ids


def _unended(ids: list[int], eos: int) -> list[int]:
    """For a mistake: a text without its end."""
    return ids[:-1] if ids[-1] == eos else ids


def _with_end(
    ended: list[tuple[float, list[int]]], eos: int
) -> list[tuple[float, list[int]]]:
    """For a mistake: those with the end token."""
    return [each for each in ended if each[1][-1] == eos]


def _one_each(
    live: list[tuple[float, list[int]]],
) -> list[tuple[float, list[int]]]:
    """For a mistake: keep the best of each beginning."""
    best: dict[tuple[int, ...], tuple[float, list[int]]] = {}
    for each in live:
        best.setdefault(tuple(each[1][:-1]), each)
    return [*best.values()]


@Spec(
    *(
        Case(f"{K} beams, α = {alpha}, table {i}", (table, 1, 2, K, max_len, alpha))
        for i, table in enumerate(_TABLES)
        for K, max_len, alpha in (
            *((1, 5, 0.0), (2, 5, 0.0), (3, 5, 0.6)),
            *((125, 4, 0.0), (125, 4, 1.0), (125, 4, -0.7)),
        )
    ),
    *(  # which `separating` has found
        Case(f"{K} beams, α = {alpha}, seed {seed}", (_four(seed), 1, 2, K, n, alpha))
        for K, n, alpha, seed in (
            *((2, 3, 2.0, 29), (2, 3, 2.0, 6), (2, 3, 2.0, 4), (3, 4, 1.0, 5)),
            *((2, 3, 2.0, 10), (2, 3, 2.0, 2)),
        )
    ),
    wrong="""
    # decoding#the-formula
    without_end: You leave the end token out of what you return.
        return max(ended)[1] → return [x for x in max(ended)[1] if x != eos]
    with_bos: You return the start token too.
        return max(ended)[1] → return [bos, *max(ended)[1]]
    worst: You return the worst text.
        max(ended) → min(ended)
    last_found: You return the last text that ended.
        max(ended) → ended[-1]
    ended_forgotten: You forget what ended earlier: only what is left at the end counts.
        divisor = → ended = []; divisor =
    unended_forgotten: You forget texts that have not ended at max_len, if others have.
        return max(ended)[1] → return max(_with_end(ended, eos) or ended)[1]
    unended_left_out: Texts that have not ended at max_len do not count for you.
        if ids[-1] == eos or length == max_len → if ids[-1] == eos
    ended_go_on: Texts that ended go on, and may end again.
        live = [each for each in candidates if each[1][-1] != eos] → live = candidates
    end_added: You add the end token to a text that has none.
        return max(ended)[1] → return [*_unended(max(ended)[1], eos), eos]
    twice_the_beams: You follow twice as many beams.
        live = live[:num_beams] → live = live[: 2 * num_beams]
    goes_on: Texts that ended go on.
        live = [each for each in candidates if each[1][-1] != eos] → live = candidates
        if ids[-1] == eos or length == max_len → if length == max_len
        return max(ended)[1] → return _cut(max(ended)[1], eos)
    one_more_token: You write one token more than max_len.
        max_len + 1) → max_len + 2)
        length == max_len → length == max_len + 1
    one_token_less: You write one token less than max_len: the start token counts not.
        max_len + 1) → max(max_len, 2))
        length == max_len → length == max(max_len - 1, 1)
    length_with_bos: The length counts the start token; it does not.
        ((5 + length) / 6) → ((6 + length) / 6)
    length_less_one: You divided by ((4 + length) / 6)^α; it is 5 + length.
        ((5 + length) / 6) → ((4 + length) / 6)
    length_without_end: The length leaves the end token out; it counts.
        divisor, ids → (((5 + length - (ids[-1] == eos)) / 6) ** length_penalty), ids
    times_alpha: You multiplied by α; it is an exponent.
        ((5 + length) / 6) ** length_penalty →
            ((5 + length) / 6) * (length_penalty or 1)
    penalty_on_the_way: You divide on the way, too: sums of one length are compared.
        total + float(share) →
            (total + float(share)) / ((5 + length) / 6) ** length_penalty
        total / divisor → total
    probabilities: You add probabilities; add their logarithms.
        total + float(share) → total + float(np.exp(share))
    multiplied_logs: You multiply log-probabilities; add them.
        total + float(share) → -abs((total or 1.0) * float(share))
    smallest: You follow the unlikeliest.
        key=lambda each: -each[0]) → key=lambda each: each[0])
    without_bos: You ask the model without the start token.
        [bos, *ids] → ids or [bos]
    bos_and_newest: You ask the model with the start token and the newest alone.
        [bos, *ids] → [bos, *ids[-1:]]
    newest_token: You ask the model with the newest token alone.
        [bos, *ids] → [bos, *ids][-1:]
    own_best: Each beam keeps its own best: the best of all go on together.
        live = live[:num_beams] → live = _one_each(live)[:num_beams]
    one_way_each: After the first token each beam follows its own likeliest alone: the
        best of all go on.
        divisor = → candidates = (
            _one_each(candidates) if length > 1 else candidates[:num_beams]); divisor =
    ended_of_all: You keep texts that end though they are not among the best.
        candidates[:num_beams] → candidates
    fewer_beams: What ends takes a beam's place for good: as many go on as before.
        candidates if each[1][-1] != eos] →
            candidates[:num_beams] if each[1][-1] != eos]
    one_beam_more: You follow too many beams.
        live = live[:num_beams] → live = live[: num_beams + 1]
        candidates[:num_beams] → candidates[: num_beams + 1]
    enough_ended: You stop when as many have ended as there are beams.
        live = live[:num_beams] →
            live = live[:num_beams] if len(ended) < num_beams else []
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
    newest_only_of_equal: You compare the newest token's log-probability; it is the sum.
        total + float(share) → float(share)
        return max(ended)[1] → return max(ended, key=lambda each: each[0])[1]
    pruned_by_newest: You follow what ends in the likeliest token; it is the sum.
        key=lambda each: -each[0]) →
            key=lambda each: -[*next_log_probs([bos, *each[1][:-1]])][each[1][-1]])
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
