"""Attention in other code, for mistakes that the oracle's loops cannot make."""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from tformer.check.spec import Array, mistakes

if TYPE_CHECKING:
    from torch import Tensor


def in_torch(
    query: "Tensor", key: "Tensor", value: "Tensor", mask: "Tensor | None" = None
) -> "Tensor":
    """Attend by methods of tensors: the right code of mistakes beside the numbers."""
    scores = query @ key.transpose(-2, -1) / sqrt(query.shape[-1])
    if mask is None:
        return scores.softmax(-1) @ value
    weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ value


IN_TORCH = mistakes(
    in_torch,
    """
    # attention#the-code
    nan_gradient gradient: You replaced NaN by 0 after a softmax of -inf: the
        gradient is NaN all the same.
        scores.masked → (scores + (0 * scores.detach()).masked
        -1e30).softmax(-1) * mask → -np.inf)).softmax(-1).nan_to_num(0.0)
    detached gradient: You cut the query off: no gradient flows to it.
        query @ key → query.detach() @ key
    widened dtype: You return a wider dtype than came in: go back to the query's.
        scores.softmax(-1) @ value → scores.softmax(-1).double() @ value.double()
    scaled_in_place inputs: You changed the query itself: write into a tensor of
        your own.
        query @ key.transpose(-2, -1) / sqrt → query.div_(sqrt
        (query.shape[-1]) → (query.shape[-1])) @ key.transpose(-2, -1)
    needs_rows layout: You call `view` on what may lie in memory in another order:
        use `reshape`.
        query @ key → query.view(-1).view(query.shape) @ key
    """,
    "torch",
)


def softmax(x: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Divide exp by its sum, 0 where all are -inf."""
    largest = x.max(axis, keepdims=True)
    powers = np.exp(x - np.where(largest == -np.inf, 0.0, largest))
    total = powers.sum(axis, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1.0, total))


def at_once(query: Array, key: Array, value: Array, mask: Array | None = None) -> Array:
    """Attend with all heads at once."""
    scores = query @ key.swapaxes(-1, -2) / sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores, -1) @ value


AT_ONCE = mistakes(
    at_once,
    """
    # attention#what-if-softmax-runs-over-the-wrong-axis
    softmax_over_heads: You took the softmax over the heads: it runs over the keys.
        (scores, -1) → (scores, 1)
    softmax_over_batch: You took the softmax over the batch: it runs over the keys.
        (scores, -1) → (scores, 0)
    root_of_queries: You divided by the root of the number of queries.
        / sqrt(query.shape[-1]) → / sqrt(query.shape[-2])
    half_of_width: You multiplied by 1/d_k · 1/2: the root is d_k ** 0.5, in brackets.
        / sqrt(query.shape[-1]) → / query.shape[-1] * 0.5
    eight: You divided by 8, as for heads of 64: it is the root of d_k.
        / sqrt(query.shape[-1]) → / 8
    softmax_of_everything: You took one softmax over all scores of all heads and texts.
        (scores, -1) → (scores, (0, 1, 2, 3))
    weights_returned: You return the weights: mix the values by them.
        softmax(scores, -1) @ value → softmax(scores, -1)
    causal_without_mask: You hid what comes later where no mask is given.
        if mask is not None: → if (mask := np.tri(*scores.shape[-2:], dtype=bool)
            if mask is None else mask) is not None:
    log_softmax: You took log_softmax: the weights are the softmax.
        softmax(scores, -1) → np.log(softmax(scores, -1))
    last_key_only: You kept the last key's value alone: add up over the keys.
        softmax(scores, -1) @ value → softmax(scores, -1)[..., -1:] @ value[..., -1:, :]
    last_key_left_out: You left out the last key.
        softmax(scores, -1) @ value → softmax(scores[..., :-1], -1) @ value[..., :-1, :]
    axis_not_kept: You divided by sums whose axis is gone: keep it (keepdim=True).
        softmax(scores, -1) → _by_lost_sums(scores)
    largest_of_all: You subtracted the largest of all scores: where a row's own are far
        below it, exp gives 0. Subtract each row's largest.
        softmax(scores, -1) → shares(np.exp(scores - scores.max()))
    softmax_over_all: You took one softmax over all scores of a head, not of each query.
        (scores, -1) → (scores, (-1, -2))
    """,
)


def over_heads(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    **_: object,
) -> Array:
    """For a mistake: a softmax over the heads."""
    scores = query @ key.swapaxes(-1, -2) / sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return softmax(scores, 1) @ value


def shares(x: Array) -> Array:
    """Divide by the sum, as it is."""
    total = x.sum(-1, keepdims=True)
    return np.asarray(x / np.where(total == 0, 1.0, total))


def _by_lost_sums(scores: Array) -> Array:
    """For a mistake: divide by sums that have lost their axis."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1))


def cosine(x: Array, y: Array) -> float:
    """Multiply two vectors of length 1."""
    return float(x @ y / sqrt(x @ x * (y @ y)))


def nearness(x: Array, y: Array) -> float:
    """Compute the negative of the squared distance."""
    return float(-((x - y) ** 2).sum())


def of_four(mask: Array) -> Array:
    """Refuse a mask of fewer axes.

    Raises:
        ValueError: it has fewer than four.
    """
    if mask.ndim < 4:
        raise ValueError(f"mask must have four axes, not {mask.ndim}")
    return mask


def doubled(x: Array, num_heads: int) -> Array:
    """For a mistake: repeat tokens where heads are to be repeated."""
    B, G, S, D = x.shape
    return np.repeat(x, num_heads // G, 2).reshape(B, num_heads, S, D)


def _as_many(num_heads: int, num_kv_heads: int) -> None:
    """For a mistake: refuse what does not broadcast.

    Raises:
        ValueError: there are fewer key heads than heads, and more than one.
    """
    if num_kv_heads not in (1, num_heads):
        raise ValueError(f"{num_heads} heads, {num_kv_heads} key heads")


def of_groups(query: Array, key: Array, value: Array) -> Array:
    """Attend with all heads of a group at once."""
    (B, H, T, Dh), G = query.shape, key.shape[1]
    grouped = query.reshape(B, G, H // G, T, Dh)
    scores = np.einsum("bgrtd,bgsd->bgtrs", grouped, key) / sqrt(Dh)
    mixed = np.einsum("bgtrs,bgsd->bgrtd", softmax(scores, -1), value)
    return mixed.reshape(B, H, T, -1)


OF_GROUPS = mistakes(
    of_groups,
    """
    # attention#what-if-softmax-runs-over-the-wrong-axis
    softmax_of_group: You took one softmax over a group's heads and keys: each head has
        its own.
        (scores, -1) → (scores, (-1, -2))
    softmax_over_heads: You took the softmax over the heads: it runs over the keys.
        (scores, -1) → (scores, -2)
    softmax_over_all_heads: You took the softmax over all heads: it runs over the keys.
        (scores, -1) → (scores, (1, 3))
    key_heads_not_repeated: You hand over fewer key heads than query heads as they are:
        each serves H / G query heads, so repeat it as often.
        grouped = → _as_many(H, G); grouped =
    """,
)

# Of attention with fewer key/value heads, in the oracle's code.
GROUPED = """
    # qk-norm#key-heads-are-tiled
    tiled_heads: You tiled the key heads: query head h reads h // (H / G), not h % G.
        h // (H // G) → h % G
    # heads#the-formula
    first_key_head: All query heads read the first key head.
        h // (H // G) → 0
    last_key_head: All query heads read the last key head.
        h // (H // G) → G - 1
    first_heads_only: Query head h reads key head h, and the rest the last one.
        h // (H // G) → min(h, G - 1)
    by_key_heads: Query head h reads key head h // (H / G); yours reads h // G.
        h // (H // G) → min(h // G, G - 1)
    rest_of_heads_empty: Only as many query heads as there are key heads attend: the
        rest of your result is 0.
        h // (H // G) → min(h, G - 1)
        output[b, h] = → output[b, h] = (h < G) *
    backwards: You count the key heads from the other end.
        h // (H // G) → G - 1 - h // (H // G)
    mean_of_keys: You took the mean of all key heads.
        @ key[b, g, s] → @ key[b, :, s].mean(0)
        @ value[b, g] → @ value[b].mean(0)
    tiled_values: You tiled the values alone: head h reads h // (H / G).
        @ value[b, g] → @ value[b, h % G]
    tiled_keys: You tiled the keys alone: head h reads h // (H / G).
        @ key[b, g, s] → @ key[b, h % G, s]
    first_keys: All query heads read the keys of the first key head; values are right.
        @ key[b, g, s] → @ key[b, 0, s]
    first_values: All query heads read the values of the first key head; keys are right.
        @ value[b, g] → @ value[b, 0]
    one_group_off: Query head h reads the key head after its own.
        h // (H // G) → (h // (H // G) + 1) % G
    results_in_turn: Your results come back with the heads of the groups in turn.
        output[b, h] = → output[b, h % (H // G) * G + g] =
    query_mean: You took the mean of the queries of a group; each attends by itself.
        query[b, h, t] @ → query[b, g * (H // G) : (g + 1) * (H // G), t].mean(0) @
    query_sum: You added up the queries of a group; each attends by itself.
        query[b, h, t] @ → query[b, g * (H // G) : (g + 1) * (H // G), t].sum(0) @
    tokens_repeated: You repeated tokens in place of heads, and gave them heads' shape.
        @ key[b, g, s] → @ attending.doubled(key, H)[b, h, s]
        @ value[b, g] → @ attending.doubled(value, H)[b, h]
"""
