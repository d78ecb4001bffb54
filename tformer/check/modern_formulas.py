"""The formulas of newer models: routers, indexers, layers with a state, streams.

They are written as those in `formulas`. A loop here ends where the tokens do, or after
a few rounds, however it is altered.
"""

# ruff: noqa: D103
# mypy: allow-untyped-defs, allow-untyped-calls

from tformer.check.array_words import bounded_numpy as np
from tformer.check.array_words import mean, sigmoid, softmax, total, transposed
from tformer.check.formulas import formula


@formula
def route(logits, top_k, scores="softmax", bias=None):
    s = sigmoid(logits) if scores == "sigmoid" else softmax(logits, -1)
    wanted = s if bias is None else s + bias
    chosen = np.argsort(-wanted, -1)[:, :top_k]
    weights = np.take_along_axis(s, chosen, -1)
    return s, chosen, weights / total(weights, -1)


@formula
def index_scores(query, key, weights):
    H, Dh = query.shape[1], query.shape[-1]
    product = query @ transposed(key) / np.sqrt(Dh)
    counted = weights[..., None] * np.maximum(product, 0)
    return total(counted, 1) / np.sqrt(H)


@formula
def choose_keys(scores, top_k, attn_mask):
    wanted = np.where(attn_mask, scores, -np.inf)
    order = np.argsort(-wanted, -1, kind="stable")
    rank = np.argsort(order, -1)
    return (rank < top_k) & attn_mask


@formula
def delta_rule(query, key, value, beta, log_decay, state):
    alpha = np.exp(log_decay)
    alpha = alpha[..., None] if alpha.ndim == 3 else alpha
    outputs = []
    for t in range(beta.shape[2]):
        state = alpha[:, :, t, :, None] * state
        k, v = key[:, :, t], value[:, :, t]
        error = v - np.sum(k[..., None] * state, 2)
        written = k[..., None] * error[:, :, None]
        state = state + beta[:, :, t, None, None] * written
        outputs.append(np.sum(query[:, :, t, :, None] * state, 2))
    return np.stack(outputs, 2), state


@formula
def short_convolution(x, weight, past, bias=None):
    T, K = x.shape[1], weight.shape[1]
    seen = np.concatenate((past, x), 1)
    y = 0 if bias is None else bias
    for i in range(K):
        y = y + weight[:, i] * seen[:, i : i + T]
    return y, seen[:, T:]


@formula
def state_space(x, step, rate, into, out_of, state):
    kept = np.exp(-step * rate[:, None])[..., None, None]
    delta = step[..., None, None]
    outputs = []
    for t in range(x.shape[2]):
        written = into[:, :, t, :, None] * x[:, :, t, None]
        state = kept[:, :, t] * state + delta[:, :, t] * written
        outputs.append(np.sum(out_of[:, :, t, :, None] * state, 2))
    return np.stack(outputs, 2), state


@formula
def clamped_swiglu(x, w_in, b_in, w_out, b_out, limit=7.0, alpha=1.702):
    both = x @ w_in.T + b_in
    gate = np.minimum(both[..., 0::2], limit)
    up = np.maximum(np.minimum(both[..., 1::2], limit), -limit)
    inner = gate * sigmoid(alpha * gate) * (up + 1)
    return inner @ w_out.T + b_out


def sinkhorn(scores, rounds, eps):
    matrix = softmax(scores, -1) + eps
    matrix = matrix / (total(matrix, -2) + eps)
    for _ in range(1, rounds):
        matrix = matrix / (total(matrix, -1) + eps)
        matrix = matrix / (total(matrix, -2) + eps)
    return matrix


formula(sinkhorn)  # not above it: the next one calls it, and reads what it returns


@formula
def hyper_connection(x, proj, scale, base, branch):
    B, T, N, D = x.shape
    flat = x.reshape(B, T, N * D)
    made = flat / np.sqrt(mean(flat**2, -1) + 0.01) @ proj.T
    r = sigmoid(scale[0] * made[..., :N] + base[:N]) + 0.01
    w = 2 * sigmoid(scale[1] * made[..., N : 2 * N] + base[N : 2 * N])
    M = scale[2] * made[..., 2 * N :] + base[2 * N :]
    M = sinkhorn(M.reshape(B, T, N, N), 3, 0.01)
    y = np.sum(r[..., None] * x, 2) @ branch.T
    return transposed(M) @ x + w[..., None] * y[:, :, None]
