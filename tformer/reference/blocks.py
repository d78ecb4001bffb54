"""The fast form of attention in NumPy: some queries at a time, and in place.

N = B · H heads of all sequences · n heads at a time · T queries · S keys ·
t queries at a time · s keys that these see · Dh head_dim · Dv width of a value ·
C keys of a tile · w tiles

`attention.py` says what is computed. This computes it without all T × S scores, and so
that the scores of a block stay in the processor's cache from one step to the next.
"""

import math

import numpy as np

QUERIES_AT_A_TIME = 80
NUMBERS_OF_A_TILE = 2**13  # t · C · Dh is below 100³, which OpenBLAS multiplies faster
SCORES_AT_A_TIME = 2**17  # of short sequences several heads: 512 KB of float32
FEW = 2**14  # so few scores are shifted sooner than bounded
SMALL = 30.0  # exp(30) is 1e13: sums of such numbers are far from float32's 3e38


def attend_in_blocks(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    attn_mask: np.ndarray | None,
    bias: np.ndarray | None,
    is_causal: bool,
    scale: float,
    softcap: float | None,
) -> np.ndarray:
    """Attend as `scaled_dot_product_attention` does, which has checked the arguments.

    Args:
        query: (B, H, T, Dh).
        key: (B, H, S, Dh).
        value: (B, H, S, Dv).
        attn_mask: bool, two or four axes, or None.
        bias: floating, two or four axes, or None.
        is_causal: hide later keys; they are not computed either.
        scale: factor of the scores.
        softcap: bound of the scores, or None.

    Returns:
        (B, H, T, Dv).
    """
    (B, H, T, Dh), (S, Dv) = query.shape, value.shape[2:]
    wide = np.result_type(query, key, np.float32)  # half precision is for storage
    q = query.astype(wide, copy=False).reshape(B * H, T, -1)  # (N, T, Dh)
    k = key.astype(wide, copy=False).reshape(B * H, S, -1)  # (N, S, Dh)
    v = value.astype(np.result_type(wide, value), copy=False).reshape(B * H, S, Dv)
    mask, added = (
        x if x is None else np.broadcast_to(x, (B, H, *x.shape[-2:]))
        for x in (attn_mask, bias)
    )
    bound = math.inf if softcap is None else softcap
    if softcap is None and bias is None and B * H * T * S > FEW:
        bound = _largest_score(q, k) * abs(scale)
    needs_largest = bias is not None or not bound < SMALL

    t = min(T, QUERIES_AT_A_TIME)
    n = max(1, SCORES_AT_A_TIME // max(1, t * S))
    C = max(1, NUMBERS_OF_A_TILE // Dh)
    memory, ones = np.empty(min(n, B * H) * t * S, wide), np.ones(S, wide)
    output = np.zeros((B * H, T, Dv), v.dtype)
    blind = max(0, T - S) if is_causal else 0  # the first queries, before any key
    for head in range(0, B * H, n):
        heads = slice(head, min(head + n, B * H))
        keys, values = k[heads], v[heads]  # (n, S, Dh), (n, S, Dv)
        tiles = parts = None
        if t < T:  # they are read again
            tiles = _in_tiles(keys, C, scale)  # (n, w, Dh, C)
            parts = np.empty((len(keys), S // C, t, Dv), v.dtype)
        for begin in range(blind, T, t):
            rows = slice(begin, min(begin + t, T))
            s = S - (T - rows.stop) if is_causal else S
            shape = (heads.stop - head, rows.stop - begin, s)
            scores = memory[: math.prod(shape)].reshape(shape)
            if tiles is None:
                scaled = q[heads, rows] * wide.type(scale)
                np.matmul(scaled, keys[:, :s].swapaxes(1, 2), out=scores)
            else:
                _score_tiles(q[heads, rows], tiles, scores)  # (n, t, s)
            if softcap is not None:
                np.tanh(np.divide(scores, softcap, out=scores), out=scores)
                scores *= softcap
            if added is not None:
                scores += _block(added, heads, rows, s)
            if mask is not None:
                np.copyto(scores, -np.inf, where=~_block(mask, heads, rows, s))
            if is_causal:
                first = s - shape[1] + 1  # the first key that some query may not see
                newest = np.arange(begin, rows.stop)[:, None] + S - T
                future = np.arange(first, s) > newest
                np.copyto(scores[..., first:], -np.inf, where=future)
            if needs_largest:
                largest = scores.max(axis=-1, keepdims=True)
                largest[largest == -np.inf] = 0  # -inf − -inf would be NaN
                scores -= largest
            powers = np.exp(scores, out=scores)
            sums = (powers @ ones[:s])[..., None]  # (n, t, 1); a product is fastest
            if not sums.all():
                sums[sums == 0] = 1  # a query that may attend to nothing
            mixed = output[heads, rows]
            if parts is None:
                np.matmul(powers, values[:, :s], out=mixed)
            else:
                _mix_tiles(powers, values, C, parts, mixed)
            mixed /= sums
    dtype = np.result_type(query, value)
    return output.reshape(B, H, T, Dv).astype(dtype, copy=False)


def _in_tiles(keys: np.ndarray, C: int, scale: float) -> np.ndarray:
    """Put scaled keys (n, S, Dh) into tiles (n, w, Dh, C), the last one part full."""
    n, S, Dh = keys.shape
    whole, rest = divmod(S, C)
    tiles = np.empty((n, whole + (rest > 0), Dh, C), keys.dtype)
    filled = keys[:, : whole * C].reshape(n, whole, C, Dh).swapaxes(2, 3)
    np.multiply(filled, scale, out=tiles[:, :whole])
    if rest:
        left = keys[:, whole * C :].swapaxes(1, 2)
        np.multiply(left, scale, out=tiles[:, whole, :, :rest])
    return tiles


def _score_tiles(q: np.ndarray, tiles: np.ndarray, scores: np.ndarray) -> None:
    """Write the products of queries (n, t, Dh) and the first s keys to (n, t, s)."""
    C = tiles.shape[-1]
    whole, rest = divmod(scores.shape[-1], C)
    np.matmul(q[:, None], tiles[:, :whole], out=_cut(scores, C))  # (n, whole, t, C)
    if rest:
        np.matmul(q, tiles[:, whole, :, :rest], out=scores[..., whole * C :])


def _mix_tiles(
    powers: np.ndarray, v: np.ndarray, C: int, parts: np.ndarray, out: np.ndarray
) -> None:
    """Write to (n, t, Dv) the values (n, S, Dv) mixed by powers (n, t, s)."""
    n, t, s = powers.shape
    whole, rest = divmod(s, C)
    values = v[:, : whole * C].reshape(n, whole, C, v.shape[2])
    parts = parts[:, :whole, :t]  # (n, whole, t, Dv)
    np.matmul(_cut(powers, C), values, out=parts)
    np.add.reduce(parts, axis=1, out=out)
    if rest:
        out += powers[..., whole * C :] @ v[:, whole * C : s]


def _cut(scores: np.ndarray, C: int) -> np.ndarray:
    """View the whole tiles of scores (n, t, s) as (n, s // C, t, C)."""
    n, t, s = scores.shape
    whole = s // C
    return scores[..., : whole * C].reshape(n, t, whole, C).swapaxes(1, 2)


def _largest_score(q: np.ndarray, k: np.ndarray) -> float:
    """Bound |q · k|, which is at most |q| |k|: small scores need no shift in softmax.

    It subtracts the largest score of each row, so that no power overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = (np.einsum("ntd,ntd->nt", x, x).max() for x in (q, k))
        return math.sqrt(math.prod(map(float, squares)))


def _block(x: np.ndarray, heads: slice, rows: slice, s: int) -> np.ndarray:
    """Take some heads, queries and keys of (B, H, T or 1, S or 1)."""
    batch_and_head = np.divmod(np.arange(heads.start, heads.stop), x.shape[1])
    x = x[(*batch_and_head, rows if x.shape[2] > 1 else slice(None))]
    return x[..., :s] if x.shape[-1] > 1 else x
