"""Each exercise's formula in a few lines over whole arrays, which `altered` alters.

They give what the oracles give, with the options that they take; `modern_formulas` has
those of newer models. Names are those that a reader's code has, for a line of them is
shown with what stands in it by mistake. No line may run on when it is altered, or ask
for much memory: there is no `while`, lists that grow and lengths that are computed have
a limit, and a power is one of floats.
"""

# ruff: noqa: D103
# mypy: allow-untyped-defs, allow-untyped-calls

from collections.abc import Callable

from tformer.check.array_words import bounded_numpy as np
from tformer.check.array_words import joined, mean, sigmoid, softmax, split, steps
from tformer.check.array_words import total as total
from tformer.check.array_words import transposed as transposed
from tformer.check.calling import Array, Function

Log = Callable[[list[int]], Array]
MANY = 64  # beginnings of texts; an altered search with more is given up

# Whose results are choices: many alterations of a number choose alike by chance.
CHOOSING = {"top_k", "top_p", "beam", "causal_mask", "t5_buckets", "choose_keys"}
FORMULAS: dict[str, Function] = {}


def formula(function: Function) -> Function:
    """Keep a formula under its name, which is its spec's."""
    FORMULAS[function.__name__] = function
    return function


@formula
def attention(query, key, value, mask=None):
    Dh = query.shape[-1]
    seen = True if mask is None else mask
    scores = query @ transposed(key) / np.sqrt(Dh)
    scores = np.where(seen, scores, -np.inf)
    weights = softmax(scores, -1)
    return weights @ value


@formula
def grouped_attention(query, key, value):
    Dh, H, G = query.shape[-1], query.shape[1], key.shape[1]
    key = np.repeat(key, H // G, 1)
    value = np.repeat(value, H // G, 1)
    scores = query @ transposed(key) / np.sqrt(Dh)
    weights = softmax(scores, -1)
    return weights @ value


@formula
def multi_head(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    query = split(x @ w_q.T, num_heads)
    key = split(x @ w_k.T, num_heads)
    value = split(x @ w_v.T, num_heads)
    Dh = query.shape[-1]
    seen = True if mask is None else mask
    scores = query @ transposed(key) / np.sqrt(Dh)
    scores = np.where(seen, scores, -np.inf)
    weights = softmax(scores, -1)
    heads = weights @ value
    return joined(heads) @ w_o.T


@formula
def cached_step(q, k, v, cache):
    keys, values = cache.get("old", (k[:, :, :0], v[:, :, :0]))
    keys = np.concatenate((keys, k), 2)
    values = np.concatenate((values, v), 2)
    cache["old"] = keys, values
    Dh = q.shape[-1]
    scores = q @ transposed(keys) / np.sqrt(Dh)
    weights = softmax(scores, -1)
    return weights @ values


@formula
def causal_mask(T, S):
    query = np.arange(T)[:, None] + S - T
    key = np.arange(S)[None, :]
    return key <= query


@formula
def sinusoids(length, d_model):
    position, column = np.arange(length)[:, None], np.arange(d_model)
    exponent = (column - column % 2) / d_model
    angle = position / 10000**exponent
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


@formula
def layer_norm(x, weight, bias, eps):
    centred = x - mean(x, -1)
    variance = mean(centred**2, -1)
    normalised = centred / np.sqrt(variance + eps)
    return normalised * weight + bias


@formula
def rms_norm(x, weight, eps):
    mean_square = mean(x**2, -1)
    return x / np.sqrt(mean_square + eps) * weight


@formula
def rotary(x, positions, base):
    Dh = x.shape[-1]
    pair = np.arange(Dh // 2)
    frequency = base ** (-2.0 * pair / Dh)
    angle = positions[:, None] * frequency
    a, b = x[..., : Dh // 2], x[..., Dh // 2 :]
    first = a * np.cos(angle) - b * np.sin(angle)
    second = a * np.sin(angle) + b * np.cos(angle)
    return np.concatenate((first, second), -1)


@formula
def swiglu(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T
    up = x @ w_up.T
    inner = gate * sigmoid(gate) * up
    return inner @ w_down.T


@formula
def alibi(num_heads, T, S):
    whole = int(2.0 ** np.floor(np.log2(num_heads)))
    head, more = np.arange(whole), np.arange(num_heads - whole)
    slope = 2.0 ** (-8 * (head + 1) / whole)
    further = 2.0 ** (-8 * (2 * more + 1) / (2 * whole))
    slope = np.concatenate((slope, further))[:, None, None]
    distance = np.arange(T)[:, None] + S - T - np.arange(S)
    return -slope * np.abs(distance)


@formula
def smoothed_loss(logits, targets, pad_id, smoothing):
    V = logits.shape[-1]
    real = targets != pad_id
    row = logits - np.max(logits, -1, keepdims=True)
    log_p = row - np.log(total(np.exp(row), -1))
    target = np.arange(V) == targets[..., None]
    q = smoothing / V + (1 - smoothing) * target
    losses = -np.sum(q * log_p, -1) * real
    return np.sum(losses) / np.sum(real)


@formula
def noam(step, d_model, warmup):
    falling = step**-0.5
    rising = step * warmup**-1.5
    return d_model**-0.5 * min(falling, rising)


@formula
def t5_buckets(distance, buckets, furthest, both):
    N = buckets // 2 if both else buckets
    exact = N // 2
    apart = np.abs(distance) if both else np.maximum(distance, 0)
    share = np.log(np.maximum(apart, 1) / exact) / np.log(furthest / exact)
    wide = exact + np.floor(share * (N - exact) + 1e-9).astype(int)
    bucket = np.where(apart < exact, apart, np.minimum(wide, N - 1))
    return bucket + N * both * (distance < 0)


@formula
def top_k(logits, k):
    least = np.sort(logits, -1)[:, -k:][:, :1]
    return np.where(logits >= least, logits, -np.inf)


@formula
def top_p(logits, p):
    order = np.argsort(-logits, -1)
    share = softmax(np.take_along_axis(logits, order, -1), -1)
    before = np.cumsum(share, -1) - share
    kept = np.take_along_axis(before < p, np.argsort(order, -1), -1)
    return np.where(kept, logits, -np.inf)


@formula
def beam(next_log_probs, bos, eos, num_beams, max_len, length_penalty):
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for length in steps(1, max_len + 1):
        candidates = _continued(next_log_probs, bos, live)
        divisor = ((5 + length) / 6) ** length_penalty
        for score, ids in candidates[:num_beams]:
            if ids[-1] == eos or length == max_len:
                ended.append((score / divisor, ids))
        live = [each for each in candidates if each[1][-1] != eos][:num_beams]
    return max(ended)[1]


def _continued(
    next_log_probs: Log, bos: int, live: list[tuple[float, list[int]]]
) -> list[tuple[float, list[int]]]:
    if len(live) > MANY:
        raise ValueError(f"{len(live)} beginnings are more than {MANY}")
    found = [
        (score + float(share), [*ids, token])
        for score, ids in live
        for token, share in enumerate(next_log_probs([bos, *ids]))
    ]
    return sorted(found, key=lambda each: -each[0])


@formula
def moe(x, router, experts, k):
    logits = x @ router.T
    chosen = np.argsort(-logits, -1)[:, :k]
    weights = softmax(np.take_along_axis(logits, chosen, -1), -1)
    made = np.stack([expert(x) for expert in experts], 1)
    outputs = np.take_along_axis(made, chosen[..., None], 1)
    return np.sum(weights[..., None] * outputs, 1)


@formula
def lora(weight, a, b, alpha):
    r = a.shape[0]
    return weight + alpha / r * (b @ a)


@formula
def speculative(p, q, draft, u):
    n = 0
    for t in draft.tolist():
        if not u[n] < min(1.0, p[n, t] / q[n, t]):
            rest = np.maximum(p[n] - q[n], 0.0)
            return n, rest / np.sum(rest)
        n = n + 1
    return n, p[n]
