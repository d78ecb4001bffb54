"""Specs of attention: softmax(Q Kᵀ / √d_k) V, and with fewer key/value heads."""

from typing import Any

import numpy as np

from tformer.check.attention_mistakes import MISTAKES
from tformer.check.attention_oracle import attention
from tformer.check.spec import Case, Spec, mistakes

Array = np.ndarray


def _draw(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([*shape, seed]).normal(size=shape)


def _inputs(
    B: int, H: int, T: int, S: int, Dh: int = 7, Dv: int = 7, G: int = 0
) -> Any:
    G = G or H
    return _draw(B, H, T, Dh), _draw(B, G, S, Dh, seed=1), _draw(B, G, S, Dv, seed=2)


def _mask(*shape: int) -> Array:
    """Hide two keys of five, and from the last query all."""
    mask = _draw(*shape, seed=3) < 0.3
    mask[..., 0] = True
    mask[..., -1, :] = False
    return mask


LARGE = tuple(30 * x for x in _inputs(1, 2, 3, 5))
PADDING = np.arange(5) < np.array([5, 3])[:, None, None, None]  # (B, 1, 1, S)
CAUSAL = {"is_causal": True}
SQUARE, OBLONG = _inputs(2, 3, 5, 5), _inputs(2, 3, 4, 5, 7, 6)
CASES = (
    Case("two tokens", _inputs(1, 1, 2, 2, 4, 4)),
    Case("fewer queries than keys, wider values", OBLONG),
    Case("large scores", LARGE),
    Case("padding", (*_inputs(2, 3, 4, 5), PADDING)),
    Case("a mask of rows, one of them empty", (*OBLONG, _mask(4, 5))),
    Case("a mask of each head, with empty rows", (*OBLONG, _mask(2, 3, 4, 5))),
    Case("causal", SQUARE, CAUSAL),
    Case("causal, more keys", OBLONG, CAUSAL),
    Case("causal, more queries", _inputs(1, 2, 5, 3), CAUSAL),
    Case("causal and a mask", (*SQUARE, _mask(5, 5)), CAUSAL),
    Case("scale", SQUARE, {"scale": 0.3}),
    Case("softcap", LARGE, {"softcap": 2.0}),
    Case("bias", OBLONG, {"bias": _draw(1, 3, 4, 5)}),
    Case(
        "bias, softcap, causal and a mask",
        (*SQUARE, _mask(2, 1, 5, 5)),
        {"bias": _draw(5, 5), "softcap": 1.5, **CAUSAL},
    ),
    Case("a window of three", _inputs(1, 2, 4, 7), {"window": 3, **CAUSAL}),
    Case("a window of one", SQUARE, {"window": 1, **CAUSAL}),
    Case("sinks", SQUARE, {"sinks": _draw(3), **CAUSAL}),
    Case("sinks and a mask", (*OBLONG, _mask(4, 5)), {"sinks": _draw(3)}),
    Case("sinks and a window", SQUARE, {"sinks": _draw(3), "window": 2, **CAUSAL}),
    Case("segments", _inputs(1, 2, 5, 5), {"segments": [2, 3]}),
    Case("segments, causal", _inputs(1, 2, 6, 6), {"segments": [1, 3, 2], **CAUSAL}),
)
GROUPED = (
    Case("two heads read one", _inputs(1, 2, 2, 3, 4, 4, G=1)),
    Case("four heads read two", _inputs(2, 4, 3, 5, 7, 6, G=2)),
    Case("six heads read three, causal", _inputs(1, 6, 4, 5, G=3), CAUSAL),
    Case("softcap", _inputs(1, 4, 4, 5, G=2), {"softcap": 1.0}),
    Case("sinks", _inputs(1, 4, 3, 3, G=2), {"sinks": _draw(4), **CAUSAL}),
)


def _tiled(query: Array, key: Array, value: Array, **options: Any) -> Array:
    times = query.shape[1] // key.shape[1]
    key, value = (np.tile(x, (1, times, 1, 1)) for x in (key, value))
    return attention(query, key, value, **options)


def _first_head(query: Array, key: Array, value: Array, **options: Any) -> Array:
    return attention(query, key[:, :1], value[:, :1], **options)


GROUPED_MISTAKES = (
    *mistakes(
        "block-today#key-heads-are-tiled",
        {
            "tiled_heads: You tiled the key heads: query head h reads h // (H / G), "
            "not h % G.": _tiled
        },
    ),
    *mistakes(
        "heads#the-formula",
        {"first_key_head: All query heads read the first key head.": _first_head},
    ),
    MISTAKES[0],
)

ATTENTION = Spec(
    "attention", "attention(query, key, value, mask=None)", CASES, attention, MISTAKES
)
GROUPED_ATTENTION = Spec(
    "grouped_attention",
    "grouped_attention(query, key, value)",
    GROUPED,
    attention,
    GROUPED_MISTAKES,
)
