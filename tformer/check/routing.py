"""Specs of a router, and of the layers that have one."""

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw

_LOGITS, _BIAS = draw(5, 12), draw(12, seed=1) / 2
_SIGMOID = {"scores": "sigmoid", "bias": _BIAS}
_GROUPS = {"groups": 4, "top_groups": 2}


@Spec(
    Case("two of four", (draw(3, 4), 2)),
    Case("three of twelve", (_LOGITS, 3)),
    Case("one of three", (draw(4, 3), 1)),
    Case("large logits", (1000 + 3 * draw(2, 3), 2)),
    Case("sigmoids and a bias", (_LOGITS, 3), _SIGMOID),
    Case("a scale", (_LOGITS, 2), {"scale": 2.5}),
    Case("a scale, not divided", (_LOGITS, 2), {"scale": 1.5, "renormalise": False}),
    Case("not divided", (_LOGITS, 3), {"renormalise": False}),
    Case("in groups", (_LOGITS, 3), {**_SIGMOID, **_GROUPS}),
    Case(
        "in groups, all scores below 0",
        (_LOGITS, 3),
        {"scores": "sigmoid", "bias": _BIAS - 4, **_GROUPS, "scale": 1.5},
    ),
    Case(
        "groups of three, softmax", (3 * draw(6, 9), 2), {"groups": 3, "top_groups": 1}
    ),
    wrong="""
    # experts#the-bias-in-the-weights-too
    bias_in_weights: You weighted by scores with the bias: it is for the choice alone.
        [s[e] for e in chosen] → [wanted[e] for e in chosen]
    bias_ignored: You chose without the bias.
        s if bias is None else s + bias → s
    bias_to_logits: You added the bias to the logits: it is added to the scores.
        logits[at]) → logits[at] + (0 if bias is None else bias))
        s if bias is None else s + bias → s
    bias_alone: You chose by the bias alone: it is added to the scores.
        s if bias is None else s + bias → s if bias is None else bias
    bias_subtracted: You subtracted the bias from the scores: it is added.
        s + bias → s - bias
    bias_in_sum: You divided by a sum that has the bias in it.
        / max(weights.sum(), 1e-20) → / sum(wanted[e] for e in chosen)
    scores_with_bias: You return the scores with the bias: it is for the choice alone.
        (s, np.array(chosen) → (wanted, np.array(chosen)
    # experts#a-group-is-hidden-by-0
    hidden_by_zero: You gave experts of other groups a score of 0: that may win.
        wanted[e] = -np.inf → wanted[e] = 0.0
    # experts#groups
    groups_ignored: You chose among the experts of all groups.
        if top_groups is not None: → if False:
    best_of_group: You judged a group by its best expert: it is the sum of its two best.
        sorted(each)[-2:] → sorted(each)[-1:]
    sum_of_group: You judged a group by the sum of all: it is that of its two best.
        sorted(each)[-2:] → each
    every_so_many: You counted each so-many-th expert to a group: these are neighbours.
        e // size not in → e % groups not in
        wanted[g * size : (g + 1) * size] → wanted[g::groups]
    worst_groups: You kept the worst groups.
        -of_group[g] → of_group[g]
    one_group_fewer: You kept one group fewer.
        [:top_groups] → [: max(top_groups - 1, 1)]
    groups_without_bias: You judged the groups without the bias.
        each = wanted[g * → each = s[g *
    scale_ignored: You left the factor of the weights out.
        scale * weights → weights
    scaled_before: You multiplied by the factor before the weights were divided.
        / max(weights.sum(), 1e-20) → / max(scale * weights.sum(), 1e-20)
    divided_by_factor: You divided by the factor: multiply by it.
        scale * weights → weights / scale
    # experts#the-formula
    always_divided: You divided the weights by their sum, though it was not asked.
        if renormalise: → if weights.any():
    never_divided: You did not divide the weights of a token by their sum.
        if renormalise: → if not weights.any():
    always_softmax: You took the softmax of the logits where a sigmoid is asked.
        _score(scores, logits → _score("softmax", logits
    always_sigmoid: You took the sigmoid of the logits where a softmax is asked.
        _score(scores, logits → _score("sigmoid", logits
    smallest: You chose the experts with the smallest scores.
        lambda e: -wanted[e] → lambda e: wanted[e]
    one_more: You chose one expert more.
        [:top_k] → [: top_k + 1]
    by_number: You sorted the chosen experts by their number: the best comes first.
        [:top_k] → [:top_k]; chosen.sort()
    one_fewer: You chose one expert fewer.
        [:top_k] → [: max(top_k - 1, 1)]
    two_always: You always chose two experts: k says how many.
        [:top_k] → [:2]
    worst_first: You have the least of the chosen experts first: the best comes first.
        [:top_k] → [:top_k][::-1]
    first_experts: You took the first experts, whatever their scores.
        lambda e: -wanted[e] → lambda e: e
    as_first_token: You chose as the first token does: each token has its own experts.
        np.array(s if bias is None else s + bias) →
            np.array(_score(scores, logits[0]) + (0 if bias is None else bias))
    counted_from_one: You counted the experts from 1: the first has the number 0.
        (s, np.array(chosen), → (s, np.array(chosen) + 1,
    as_mask: You say of each expert whether it is chosen: return the numbers of the k.
        np.array(chosen), → np.isin(np.arange(len(s)), chosen),
    weights_of_all: You return a weight for each expert: return those of the k chosen.
        np.array([s[e] for e in chosen]) →
            np.where(np.isin(np.arange(len(s)), chosen), s, 0)
    logits_returned: You return the logits: return the scores that you made of them.
        (s, np.array(chosen) → (logits[at], np.array(chosen)
    logits_as_weights: You weighted by the logits: take the scores, and divide them.
        [s[e] for e in chosen] → [logits[at][e] for e in chosen]
        if renormalise: → if not weights.any():
    softmax_of_weights: You took the softmax of the chosen scores: divide by their sum.
        weights / max(weights.sum(), 1e-20) → _score("softmax", weights)
    softmax_of_chosen: You took the softmax of the chosen logits, where a sigmoid is
        asked: divide the chosen scores by their sum.
        [s[e] for e in chosen] → _score("softmax", logits[at][chosen])
    divided_by_all: You divided by the sum over all experts: take that of the chosen.
        / max(weights.sum(), 1e-20) → / s.sum()
    divided_by_largest: You divided by the largest of the chosen scores: take their sum.
        / max(weights.sum(), 1e-20) → / weights.max()
    divided_by_k: You divided by the number of the chosen: divide by their sum.
        / max(weights.sum(), 1e-20) → / top_k
    over_tokens: You took the softmax over the tokens: it is over the experts of one.
        _score(scores, logits[at]) →
            np.array([_score(scores, x)[at] for x in logits.T])
    overflow: You took exp of the logits as they are: subtract the largest.
        _score(scores, logits[at]) → _plain(scores, logits[at])
    """,
    dtypes=("float32",),  # the scores are at least in float32
)
def route(
    logits: Array,
    top_k: int,
    *,
    scores: str = "softmax",
    bias: Array | None = None,
    renormalise: bool = True,
    scale: float = 1.0,
    groups: int = 1,
    top_groups: int | None = None,
) -> tuple[Array, Array, Array]:
    """Score all experts for each token, choose, and weight the chosen ones."""
    every = []
    for at in range(len(logits)):
        s = _score(scores, logits[at])
        wanted = np.array(s if bias is None else s + bias)
        if top_groups is not None:
            size, of_group = len(s) // groups, []
            for g in range(groups):
                each = wanted[g * size : (g + 1) * size]
                of_group.append(sum(sorted(each)[-2:]))
            kept = sorted(range(groups), key=lambda g: -of_group[g])[:top_groups]
            for e in range(len(s)):
                if e // size not in kept:
                    wanted[e] = -np.inf
        chosen = sorted(range(len(s)), key=lambda e: -wanted[e])[:top_k]
        weights = np.array([s[e] for e in chosen])
        if renormalise:
            weights = weights / max(weights.sum(), 1e-20)
        every.append((s, np.array(chosen), scale * weights))
    of_scores, of_choice, of_weights = zip(*every, strict=True)
    return np.stack(of_scores), np.stack(of_choice), np.stack(of_weights)


def _score(scores: str, logits: Array) -> Array:
    if scores == "sigmoid":
        return np.asarray(1 / (1 + np.exp(-logits)))
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def _plain(scores: str, logits: Array) -> Array:
    """For a mistake: exp of whatever comes."""
    powers = np.exp(logits)
    return np.asarray(powers / (1 + powers if scores == "sigmoid" else powers.sum()))


@Spec(
    Case("all", (4, 0, 1, [])),
    Case("the first is dense", (4, 1, 1, [])),
    Case("the first three", (7, 3, 1, [])),
    Case("every second", (6, 0, 2, [])),
    Case("every third, the first two dense", (7, 2, 3, [])),
    Case("some by their number", (6, 0, 1, [1, 4])),
    wrong="""
    # experts#which-layers
    first_ignored: You gave the first layers experts: so many stay dense.
        layer >= first and → layer >= 0 and
    last_dense: You left the last layers dense: it is the first ones.
        layer >= first and → layer < layers - first and
    one_dense_more: You left one of the first layers more dense.
        layer >= first and → layer > first - (first == 0) and
    experts_first: You gave the first layers experts, and no others.
        layer >= first and → (layer < first or first == 0) and
    counted_from_zero: You counted the steps from layer 0: they are counted from 1.
        (layer + 1) % step → layer % step
    all_but_step: You left each so-many-th layer dense: these have the experts.
        (layer + 1) % step == 0 → ((layer + 1) % step > 0 or step == 1)
    step_from_first: You counted the steps from the first layer that may have experts.
        (layer + 1) % step → (layer - first + 1) % step
    step_ignored: You gave experts to each layer: only each so-many-th has them.
        (layer + 1) % step == 0 → step
    named_ignored: You gave experts to layers that are named as dense.
        layer not in named → layer >= 0
    named_from_one: You counted the named layers from 1: they are counted from 0.
        layer not in named → layer + 1 not in named
    named_have_them: You gave experts to the named layers alone: these are the dense.
        layer not in named → (layer in named or not named)
    """,
    properties=("state", "inputs"),
)
def expert_layers(layers: int, first: int, step: int, named: list[int]) -> Array:
    """Say of each layer whether it has experts: True, or one dense network."""
    kinds = np.zeros(layers, bool)
    for layer in range(layers):
        by_step = (layer + 1) % step == 0
        kinds[layer] = layer >= first and by_step and layer not in named
    return kinds
