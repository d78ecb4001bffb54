"""The oracle of attention: softmax(Q Kᵀ / √d_k) V in loops."""

from math import exp, sqrt, tanh

import numpy as np

Array = np.ndarray


def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    *,
    bias: Array | None = None,
    is_causal: bool = False,
    window: int | None = None,
    sinks: Array | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    segments: list[int] | None = None,
) -> Array:
    """Attend, one query and one key at a time."""
    (B, H, T, Dh), (G, S) = query.shape, key.shape[1:3]
    allowed = np.broadcast_to(True if mask is None else mask, (B, H, T, S))
    added = np.broadcast_to(0.0 if bias is None else bias, (B, H, T, S))
    text = [i for i, length in enumerate(segments or [S]) for _ in range(length)]
    output = np.zeros((B, H, T, value.shape[-1]))
    for b, h, t in np.ndindex(B, H, T):
        g = h // (H // G)
        scores = {}
        for s in range(S):
            behind = t + S - T - s  # the last query stands at the last key
            seen = allowed[b, h, t, s]
            if is_causal:
                seen = seen and 0 <= behind < (S if window is None else window)
            if segments is not None:
                seen = seen and text[t] == text[s]
            score = (1 / sqrt(Dh) if scale is None else scale) * float(
                query[b, h, t] @ key[b, g, s]
            )
            score = score if softcap is None else softcap * tanh(score / softcap)
            if seen:
                scores[s] = score + float(added[b, h, t, s])
        sink = [] if sinks is None else [float(sinks[h])]
        if not scores:
            continue
        largest = max(*scores.values(), *sink, -np.inf)
        total = sum(exp(score - largest) for score in (*scores.values(), *sink))
        for s, score in scores.items():
            output[b, h, t] += exp(score - largest) / total * value[b, g, s]
    return output
