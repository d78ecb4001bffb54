"""Specs of hyper-connections: several residual streams, mixed at each sub-layer."""

import numpy as np

from tformer.check.feed_forward import sigmoid
from tformer.check.spec import Array, Case, Spec, draw

ROUNDS, EPS = 3, 0.01  # of `hyper_connection`


@Spec(
    Case("two streams, one round", (draw(2, 2), 1, 1e-6)),
    Case("four streams", (draw(2, 4, 4), 5, 1e-6)),
    Case("two rounds, a large ε", (2 * draw(3, 3), 2, 0.1)),
    Case("large scores", (np.array([[700.0, 0.0], [0.0, 710.0]]), 3, 1e-6)),
    wrong="""
    # starting-well#hyper-connections
    rows_last: You divided the columns first, then the rows: columns come last.
        (matrix.sum(0) + eps) → (matrix.sum(1, keepdims=True) + eps)
        (matrix.sum(1)[:, None] + eps) → (matrix.sum(0) + eps)
    rows_alone: You divided the rows alone: columns have to sum to 1 as well.
        matrix / (matrix.sum(0) + eps) → matrix
    columns_alone: You divided the columns alone, after the first time.
        if again: → if again < 0:
    one_round: You divided once: it is done over and over.
        range(rounds) → range(1)
    one_round_more: You divided rows and columns once more than is asked.
        range(rounds) → range(rounds + 1)
    no_exponential: You divided the scores as they are; divide their exponentials.
        np.exp(scores[at] - scores[at].max(1)[:, None]) → scores[at]
    overflow: You took exp of the scores as they are: subtract the largest of a row.
        scores[at] - scores[at].max(1)[:, None] → scores[at]
    eps_ignored: You left ε out.
        matrix / matrix.sum(1)[:, None] + eps → matrix / matrix.sum(1)[:, None]
        (matrix.sum(1)[:, None] + eps) → matrix.sum(1)[:, None]
        (matrix.sum(0) + eps) → matrix.sum(0)
    eps_above_alone: You added ε to the first matrix, and not to what is divided by.
        (matrix.sum(1)[:, None] + eps) → matrix.sum(1)[:, None]
        (matrix.sum(0) + eps) → matrix.sum(0)
    rows_again: You divided the rows again in the first round: the softmax has done it.
        if again: → if again >= 0:
    columns_first: You took the softmax of the columns: it is that of the rows.
        scores[at].max(1)[:, None] → scores[at].max(0)
        matrix / matrix.sum(1)[:, None] + eps → matrix / matrix.sum(0) + eps
    softmax_of_all: You took the softmax of the whole matrix: it is that of each row.
        scores[at].max(1)[:, None] → scores[at].max()
        matrix / matrix.sum(1)[:, None] + eps → matrix / matrix.sum() + eps
    rows_at_the_end: You divided the rows once more at the end: columns come last.
        output[at] = matrix → output[at] = matrix / (matrix.sum(1)[:, None] + eps)
    one_round_fewer: You divided once less than is asked.
        range(rounds) → range(rounds - 1)
    at_once: You divided by sums of one matrix: columns are summed after the rows.
        if again: → if again < 0:
        / (matrix.sum(0) + eps) → / (matrix.sum(0) + eps) / (
            matrix.sum(1)[:, None] + eps if again else 1)
    lengths: You divided by the lengths of rows and columns: divide by their sums.
        (matrix.sum(1)[:, None] + eps) → (np.sqrt((matrix**2).sum(1))[:, None] + eps)
        (matrix.sum(0) + eps) → (np.sqrt((matrix**2).sum(0)) + eps)
    sigmoid: You took the sigmoid of the scores: divide their exponentials.
        np.exp(scores[at] - scores[at].max(1)[:, None]) → sigmoid(scores[at])
    eps_as_bound: You took ε for the least that divides: it is added to each sum.
        matrix / matrix.sum(1)[:, None] + eps → matrix / matrix.sum(1)[:, None]
        (matrix.sum(1)[:, None] + eps) → np.maximum(matrix.sum(1)[:, None], eps)
        (matrix.sum(0) + eps) → np.maximum(matrix.sum(0), eps)
    eps_below_alone: You added ε to what is divided by, and not to the first matrix.
        matrix / matrix.sum(1)[:, None] + eps → matrix / matrix.sum(1)[:, None]
    """,
)
def sinkhorn(scores: Array, rounds: int, eps: float) -> Array:
    """Divide the rows and the columns by their sums, in turn."""
    output = np.zeros(scores.shape)
    for at in np.ndindex(scores.shape[:-2]):
        matrix = np.exp(scores[at] - scores[at].max(1)[:, None])
        matrix = matrix / matrix.sum(1)[:, None] + eps
        for again in range(rounds):
            if again:
                matrix = matrix / (matrix.sum(1)[:, None] + eps)
            matrix = matrix / (matrix.sum(0) + eps)
        output[at] = matrix
    return output


def _connected(B: int, T: int, N: int, D: int) -> tuple[Array, ...]:
    """The streams, the projection to r, w and M, its scale and base, the branch."""
    width = (2 + N) * N
    made = draw(width, N * D) / 2, 0.5 + np.abs(draw(3)), draw(width, seed=1)
    return (3 * draw(B, T, N, D), *made, draw(D, D, seed=2))


@Spec(
    Case("two streams", _connected(1, 1, 2, 2)),
    Case("three streams", _connected(2, 3, 3, 4)),
    Case("one stream", _connected(1, 2, 1, 3)),
    Case("free weights", _connected(2, 2, 3, 4), {"manifold": False}),
    wrong="""
    # starting-well#the-streams-are-mixed-the-other-way
    mixed_the_other_way: You multiplied the streams by M: it is its transpose.
        mix[j, k] * → mix[k, j] *
    # starting-well#hyper-connections
    not_mixed: You left the streams as they are: M mixes them.
        mix[j, k] * → (j == k) *
    input_not_normalised: You computed r, w and M of the streams as they come: they are
        normalised first, all together.
        flat / np.sqrt(np.mean(flat**2) + EPS) → flat
    normalised_one_by_one: You normalised each stream by itself: all are one vector.
        flat / np.sqrt(np.mean(flat**2) + EPS) →
            (streams / np.sqrt(np.mean(streams**2, 1)[:, None] + EPS)).ravel()
    base_ignored: You left out what is added to the projection.
        * made + base → * made
    one_scale: You scaled r, w and M by the first number: each has its own.
        np.repeat(scale, (N, N, N * N)) → scale[0]
    read_evenly: You read the mean of the streams: r weights them.
        r[j] * streams[j] → streams[j] / N
    read_the_first: You read the first stream alone.
        r[j] * streams[j] → (j == 0) * streams[j]
    written_evenly: You wrote the output into each stream alike: w weights it.
        w[k] * y → y
    added_to_the_first: You wrote the output into the first stream alone.
        w[k] * y → (k == 0) * w[k] * y
    twice_left_out: You wrote with σ(w): it is twice that, so that it can be 1.
        2 * sigmoid(w) → sigmoid(w)
    read_softmax: You took the softmax of r: each number has its own sigmoid.
        sigmoid(r) + EPS → np.exp(r) / np.exp(r).sum() + EPS
    mixed_without_sinkhorn: You took the exponentials of M as they are: rows and columns
        are divided by their sums.
        sinkhorn(mix, ROUNDS, EPS) → np.exp(mix)
    rows_alone: You took the softmax of M, so that only its rows sum to 1.
        sinkhorn(mix, ROUNDS, EPS) → np.exp(mix) / np.exp(mix).sum(1)[:, None]
    read_and_write_swapped: You exchanged r and w: r, which reads, comes first.
        r, w, mix = → w, r, mix =
    turned_before: You transposed M before rows and columns were divided.
        .reshape(N, N) → .reshape(N, N).T
    mix_comes_first: You took M from the first numbers: r and w come before it.
        made[:N], made[N : 2 * N], made[2 * N :].reshape(N, N) →
            made[N * N : N * N + N], made[N * N + N :], made[: N * N].reshape(N, N)
    read_eps_ignored: You left out the ε that is added to σ(r).
        sigmoid(r) + EPS → sigmoid(r)
    read_divided: You divided r by its sum: each number has its own sigmoid.
        r[j] * streams[j] → r[j] / r.sum() * streams[j]
    base_scaled: You scaled what is added to the projection, too.
        * made + base → * (made + base)
    tanh: You sent the projection through a tanh: that is for free weights.
        made if manifold else np.tanh(made) → np.tanh(made)
    branch_transposed: You multiplied by the transposed matrix of the branch.
        y = branch @ → y = branch.T @
    reads_what_is_mixed: You read what was mixed: the branch reads the old streams.
        r[j] * streams[j] → r[j] * (mix.T @ streams)[j]
    tanh_left_out: Without the manifold the projection goes through a tanh.
        np.tanh(made) → made
    residual: You added the streams once more: M has them already.
        += w[k] * y → += w[k] * y + streams[k]
    """,
)
def hyper_connection(
    x: Array,
    proj: Array,
    scale: Array,
    base: Array,
    branch: Array,
    *,
    manifold: bool = True,
) -> Array:
    """Read from the streams, multiply by a matrix, write, and mix: token by token."""
    output, N = np.zeros(x.shape), x.shape[2]
    for at in np.ndindex(x.shape[:2]):
        streams = x[at]
        flat = streams.ravel()
        made = proj @ (flat / np.sqrt(np.mean(flat**2) + EPS))
        made = made if manifold else np.tanh(made)
        made = np.repeat(scale, (N, N, N * N)) * made + base
        r, w, mix = made[:N], made[N : 2 * N], made[2 * N :].reshape(N, N)
        if manifold:
            r, w = sigmoid(r) + EPS, 2 * sigmoid(w)
            mix = sinkhorn(mix, ROUNDS, EPS)
        y = branch @ sum(r[j] * streams[j] for j in range(N))
        for k in range(N):
            output[at][k] = sum(mix[j, k] * streams[j] for j in range(N))
            output[at][k] += w[k] * y
    return output
