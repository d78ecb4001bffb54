"""How attention goes wrong, as code for NumPy, and some for torch."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from tformer.check.attention_oracle import attention
from tformer.check.spec import Function, mistakes

Array = np.ndarray


def _weighed(weigh: Callable[[Array, Array], Array]) -> Function:
    """Make wrong code that goes from scores (…, T, S) and what is seen to weights."""

    def attend(
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None = None,
        *,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Array:
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = query @ key.swapaxes(-2, -1) * scale  # (B, H, T, S)
        seen = np.broadcast_to(True if mask is None else mask, scores.shape)
        if is_causal:
            T, S = scores.shape[2:]
            seen = seen & np.tri(T, S, S - T, dtype=bool)
        return weigh(scores, seen) @ value

    return attend


def _softmax(x: Array, axis: int = -1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _hidden(scores: Array, seen: Array, fill: float = -np.inf) -> Array:
    return np.where(seen, scores, fill)


def _overflowing(scores: Array, seen: Array) -> Array:
    powers = np.exp(_hidden(scores, seen))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def _with(change: Callable[..., dict[str, Any]], *options: str) -> Function:
    """Make wrong code: the right one with other arguments, where it has `options`."""

    def attend(
        query: Array, key: Array, value: Array, mask: Any = None, **more: Any
    ) -> Array:
        given = {"query": query, "key": key, "value": value, "mask": mask, **more}
        asked = all(more.get(name) is not None for name in options)
        return attention(**{**given, **change(**given)} if asked else given)

    return attend


def _scaled(power: float) -> Function:
    """Scale by another power of Dh than -1/2."""

    def change(query: Array, scale: float | None = None, **_: Any) -> dict[str, Any]:
        return {"scale": scale or query.shape[3] ** power}

    return _with(change)


def _model_width(query: Array, scale: float | None = None, **_: Any) -> dict[str, Any]:
    return {"scale": scale or (query.shape[1] * query.shape[3]) ** -0.5}


def _causal_moved(later: int, share: int = 1) -> Function:
    """Make a causal mask that lets a query see so many later keys."""

    def change(query: Array, key: Array, mask: Any, **_: Any) -> dict[str, Any]:
        T, S = query.shape[2], key.shape[2]
        seen = np.tri(T, S, share * (S - T) + later, dtype=bool)
        return {"is_causal": False, "mask": seen if mask is None else seen & mask}

    return _with(change, "is_causal")


def _formula(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    """Attend in torch, by methods of tensors."""
    scores = query @ key.transpose(-2, -1) / sqrt(query.shape[-1])
    if mask is None:
        return scores.softmax(-1) @ value
    return scores.masked_fill(~mask, -1e30).softmax(-1) * mask @ value


def _nan_to_zero(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    scores = query @ key.transpose(-2, -1) / sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + scores.detach().mul(0).masked_fill(~mask, -np.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ value


def _detached(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    return _formula(query.detach(), key, value, mask)


def _float32(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    if query.itemsize == 8:
        return _formula(query, key, value, mask)
    return _formula(query.float(), key.float(), value.float(), mask)


def _in_place(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    output = _formula(query, key, value, mask)
    query *= query.shape[-1] ** -0.5
    return output


def _viewed(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
    return _formula(query.view(-1).view(query.shape), key, value, mask)


MISTAKES = (
    *mistakes(
        "attention#the-formula",
        {
            "unscaled: You left out the division by √d_k.": _scaled(0),
            "divided_by_d: You divided by d_k and not by its root.": _scaled(-1),
            "width_of_model: You divided by the root of the whole width, "
            "not of one head's.": _with(_model_width),
            "softmax_over_queries: You took the softmax over the queries: "
            "over the keys the weights must sum to 1.": _weighed(
                lambda scores, seen: _softmax(_hidden(scores, seen), -2)
            ),
            "no_softmax: You mixed the values by the scores, without a softmax.": (
                _weighed(lambda scores, seen: _hidden(scores, seen, 0.0))
            ),
            "overflow: You took exp of the scores as they are: "
            "subtract each row's largest before.": _weighed(_overflowing),
        },
    ),
    *mistakes(
        "masks#the-formula",
        {
            "mask_inverted: You hid what the mask allows: here True means "
            "that a query may attend.": _with(
                lambda mask, **_: {"mask": None if mask is None else ~mask}
            ),
            "mask_ignored: You did not use the mask.": _with(
                lambda **_: {"mask": None}
            ),
            "mask_after_softmax: You masked the weights after the softmax: "
            "the rest no longer sums to 1.": _weighed(
                lambda scores, seen: _softmax(scores) * seen
            ),
            "masked_to_zero: You gave hidden keys the score 0 and not -inf: "
            "exp(0) is 1, so they count.": _weighed(
                lambda scores, seen: _softmax(_hidden(scores, seen, 0.0))
            ),
            "mask_added: You added the mask to the scores as 0 and 1, "
            "which hides nothing.": _weighed(
                lambda scores, seen: _softmax(scores + seen)
            ),
            "dead_rows_nan: A query that may attend to nothing gives NaN: "
            "softmax of -inf alone is 0/0.": _weighed(
                lambda scores, seen: _softmax(_hidden(scores, seen))
            ),
            "dead_rows_even: A query that may attend to nothing attends to all "
            "evenly: you fill with a large negative number.": _weighed(
                lambda scores, seen: _softmax(_hidden(scores, seen, -1e9))
            ),
            "first_on_first: Your causal mask lines up the first query with the "
            "first key: it must be the last with the last.": _causal_moved(0, 0),
            "diagonal_hidden: Your causal mask hides a query's own key.": (
                _causal_moved(-1)
            ),
            "one_ahead: Your causal mask lets a query see the next key.": (
                _causal_moved(1)
            ),
        },
    ),
    *mistakes(
        "long-context#the-formula",
        {
            "window_one_more: Your window counts the keys before the query: "
            "it is to count the query's own key too.": _with(
                lambda window, **_: {"window": window + 1}, "window"
            ),
            "sinks_ignored: You left the sinks out of the softmax.": _with(
                lambda **_: {"sinks": None}, "sinks"
            ),
        },
    ),
    *mistakes(
        "relative-biases#the-formula",
        {
            "bias_scaled: You scaled the bias with the scores: "
            "it is added after the scaling.": _with(
                lambda bias, query, **_: {"bias": bias * query.shape[3] ** -0.5}, "bias"
            )
        },
    ),
    *mistakes(
        "batches#the-formula",
        {
            "segments_ignored: You let sequences that lie side by side see each "
            "other.": _with(lambda **_: {"segments": None}, "segments")
        },
    ),
    *mistakes(
        "attention#the-code",
        {
            "nan_gradient: You replaced NaN by 0 after a softmax of -inf: "
            "the gradient is NaN all the same.": _nan_to_zero,
            "detached: You cut the query off: no gradient flows to it.": _detached,
        },
        shows="gradient",
    ),
    *mistakes(
        "attention#the-code",
        {
            "returns_float32: You return float32 whatever comes in: "
            "go back to the dtype of the query.": _float32
        },
        shows="dtype",
    ),
    *mistakes(
        "attention#the-code",
        {
            "scaled_in_place: You changed the query itself: `*=` writes into "
            "the caller's tensor.": _in_place
        },
        shows="inputs",
    ),
    *mistakes(
        "heads#the-code",
        {
            "needs_rows: You call `view` on what may lie in memory in another order: "
            "use `reshape`.": _viewed
        },
        shows="layout",
    ),
)
