"""Specs of layers with a state: short convolution, the delta rule, Mamba-2."""

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


def _decay(*shape: int) -> Array:
    return -np.abs(draw(*shape, seed=8))


def _rates(*shape: int) -> Array:
    return np.random.default_rng(0).uniform(0.2, 0.9, shape)


def _convolved(B: int, T: int, C: int, K: int) -> tuple[Array, Array, Array]:
    return draw(B, T, C), draw(C, K), draw(B, K - 1, C, seed=1)


@Spec(
    Case("one channel, two tokens mixed", _convolved(1, 3, 1, 2)),
    Case("three channels", _convolved(2, 5, 3, 4)),
    Case("as many channels as tokens mixed", _convolved(1, 4, 3, 3)),
    Case("fewer tokens than are mixed", _convolved(2, 1, 3, 4)),
    Case("a bias", _convolved(2, 4, 5, 3), {"bias": draw(5, seed=2)}),
    wrong="""
    # linear-attention#short-convolution
    backwards: You took the weights from the other end: the last is the token's own.
        weight[c, i] * → weight[c, K - 1 - i] *
    own_left_out: You left the token itself out: it has the last weight.
        for i in range(K)) → for i in range(K - 1))
    one_too_early: You mixed the tokens one place earlier: the token itself counts.
        seen[b, t + i, c] → seen[b, max(t + i - 1, 0), c]
    one_filter: You mixed all channels by the weights of the first: each has its own.
        weight[c, i] * → weight[0, i] *
    channels_mixed: You added the channels up; each is mixed with itself alone.
        seen[b, t + i, c] → seen[b, t + i].sum()
    averaged: You divided by the number of tokens: it is a sum.
        for i in range(K)) → for i in range(K)) / K
    bias_ignored: You left the bias out.
        bias is not None → bias is True
    # linear-attention#a-convolution-that-begins-anew
    begins_anew: You put zeros before the first token, whatever came before it.
        np.concatenate((past, x), 1) → np.concatenate((0 * past, x), 1)
    past_kept: You return the past that came in: the next call needs the last tokens.
        seen[:, T:] → past
    past_of_outputs: You keep what the convolution gave; keep what it was given.
        seen[:, T:] → np.concatenate((past, y), 1)[:, T:]
    """,
)
def short_convolution(
    x: Array, weight: Array, past: Array, *, bias: Array | None = None
) -> tuple[Array, Array]:
    """Mix each number with those of its channel in the K - 1 tokens before."""
    (B, T, C), K, y = x.shape, weight.shape[1], np.zeros(x.shape)
    seen = np.concatenate((past, x), 1)
    for b, t, c in np.ndindex(B, T, C):
        y[b, t, c] = sum(weight[c, i] * seen[b, t + i, c] for i in range(K))
    if bias is not None:
        y = y + bias
    return y, seen[:, T:]


def _corrected(
    B: int, H: int, T: int, Dk: int, Dv: int, channels: bool = False
) -> tuple[Array, ...]:
    """Query, key, value, β, log α, state; each key of length 1."""
    key = draw(B, H, T, Dk, seed=1)
    key = key / np.sqrt((key**2).sum(-1, keepdims=True))
    decay = _decay(B, H, T, Dk) if channels else _decay(B, H, T)
    inputs = draw(B, H, T, Dk), key, draw(B, H, T, Dv, seed=2), _rates(B, H, T)
    return (*inputs, decay, draw(B, H, Dk, Dv, seed=3))


@Spec(
    Case("two tokens", _corrected(1, 1, 2, 2, 2)),
    Case("wider values", _corrected(2, 2, 4, 3, 5)),
    Case("a decay for each channel", _corrected(1, 2, 4, 3, 3, channels=True)),
    Case("the same, wider values", _corrected(2, 1, 3, 2, 5, channels=True)),
    wrong="""
    # linear-attention#the-formula
    decay_ignored: You left the decay out.
        np.exp(log_decay[b, h, t]) → np.exp(0 * log_decay[b, h, t])
    logarithm: You multiplied by log α; α is its exponential.
        np.exp(log_decay[b, h, t]) → (log_decay[b, h, t])
    growing: You divided by α: what was written earlier grows.
        np.exp(log_decay → np.exp(-log_decay
    state_ignored: You began with zeros; there is a state from the tokens before.
        state.copy() → np.zeros(state.shape)
    read_first: You read before you wrote: a token sees what it wrote itself.
        output[b, h, t] = S[b, h].T @ q → output[b, h, t] = before.T @ q
    # linear-attention#the-gated-delta-rule
    not_corrected: You wrote the value itself: write the error of the state's answer.
        v - S[b, h].T @ k → v
    other_sign: You added the state's answer to the value: subtract it.
        v - S → v + S
    beta_ignored: You corrected the whole error; β says how much of it.
        beta[b, h, t] * np → 1.0 * np
    beta_of_value: You multiplied the value by β, and not the state's answer.
        v - S → beta[b, h, t] * v - S
        + beta[b, h, t] * np → + 1.0 * np
    written_transposed: You wrote v kᵀ; here a row of the state is a channel of the key.
        np.outer(k, error) → np.outer(error, k)
    answer_of_query: You took what the state answers to the query: the key is asked.
        v - S[b, h].T @ k → v - S[b, h].T @ q
    # linear-attention#1d-twice
    scaled: You divided the query by √d: that was done before.
        S[b, h].T @ q → S[b, h].T @ q / np.sqrt(len(q))
    # linear-attention#the-error-of-a-state-that-has-not-decayed
    error_before: You took the error of the state before it decayed.
        v - S[b, h].T @ k → v - before.T @ k
    decayed_after: You let the state decay after the token wrote: what it writes stays.
        S[b, h] = alpha * before → S[b, h] = before
        S[b, h] + beta[b, h, t] * np.outer(k, error) →
            alpha * (S[b, h] + beta[b, h, t] * np.outer(k, error))
    # linear-attention#kda
    one_for_all: You took the mean decay of the channels: each has its own.
        np.exp(log_decay[b, h, t]) → np.exp(np.mean(log_decay[b, h, t]))
    first_for_all: You let all channels decay as the first does.
        np.exp(log_decay[b, h, t]) → np.exp(np.ravel(log_decay[b, h, t])[0])
    # linear-attention#columns-that-decay-in-the-place-of-rows
    columns: You let the columns of the state decay, which are the value's: the rows do.
        reshape(alpha, (-1, 1)) → reshape(alpha, (1, -1))
    """,
)
def delta_rule(
    query: Array, key: Array, value: Array, beta: Array, log_decay: Array, state: Array
) -> tuple[Array, Array]:
    """Let the state of each head decay, correct it, and read it, token by token."""
    output, S = np.zeros(value.shape), state.copy()
    for b, h, t in np.ndindex(*beta.shape):
        q, k, v, before = query[b, h, t], key[b, h, t], value[b, h, t], S[b, h].copy()
        alpha = np.exp(log_decay[b, h, t])
        alpha = np.reshape(alpha, (-1, 1))  # one for all rows, or for each its own
        S[b, h] = alpha * before
        error = v - S[b, h].T @ k
        S[b, h] = S[b, h] + beta[b, h, t] * np.outer(k, error)
        output[b, h, t] = S[b, h].T @ q
    return output, S


def _advanced(B: int, H: int, T: int, P: int, N: int) -> tuple[Array, ...]:
    """x, Δ, a, B, C, state."""
    x, step, rate = draw(B, H, T, P), _rates(B, H, T), 1 + np.abs(draw(H, seed=4))
    into, out_of = draw(B, H, T, N, seed=5), draw(B, H, T, N, seed=6)
    return x, step, rate, into, out_of, draw(B, H, N, P, seed=7)


@Spec(
    Case("two tokens", _advanced(1, 1, 2, 2, 2)),
    Case("two heads", _advanced(1, 2, 4, 3, 3)),
    Case("a wider state", _advanced(2, 3, 3, 2, 5)),
    wrong="""
    # linear-attention#mamba-2
    input_without_step: You wrote x as it came: it is multiplied by the step Δ.
        delta * np.outer → np.outer
    decay_without_step: You let each token decay alike: the rate is multiplied by Δ.
        np.exp(-delta * rate[h]) → np.exp(-rate[h])
    growing: Your state grows: the exponent is -Δ a.
        np.exp(-delta → np.exp(delta
    exp_twice: You took the exponential of the rate: it comes as it is, not its log.
        -delta * rate[h] → -delta * np.exp(rate[h])
    euler: You multiplied by 1 - Δ a, which is exp(-Δ a) for small steps alone.
        np.exp(-delta * rate[h]) → (1 - delta * rate[h])
    zero_order_hold: You wrote (1 - exp(-Δ a)) / a in the place of Δ: Mamba takes Δ B.
        delta * np.outer → (1 - np.exp(-delta * rate[h])) / rate[h] * np.outer
    into_and_out_swapped: You exchanged B and C: B says where to write, C what to read.
        np.outer(into[b, h, t] → np.outer(out_of[b, h, t]
        @ out_of[b, h, t] → @ into[b, h, t]
    rate_of_first: You let all heads decay at the rate of the first.
        -delta * rate[h] → -delta * rate[0]
    decayed_after: You let what a token writes decay at once: the state before it does.
        kept * before + delta * np → kept * before + kept * delta * np
    read_first: You read before you wrote: a token sees what it wrote itself.
        y[b, h, t] = S[b, h].T → y[b, h, t] = before.T
    state_ignored: You began with zeros; there is a state from the tokens before.
        state.copy() → np.zeros(state.shape)
    added_to_input: You added x to the result: the skip is another part.
        @ out_of[b, h, t] → @ out_of[b, h, t] + x[b, h, t]
    """,
)
def state_space(
    x: Array, step: Array, rate: Array, into: Array, out_of: Array, state: Array
) -> tuple[Array, Array]:
    """Let the state of each head decay, write Δ B xᵀ, read with C, token by token."""
    y, S = np.zeros(x.shape), state.copy()
    for b, h, t in np.ndindex(*step.shape):
        delta, before = step[b, h, t], S[b, h].copy()
        kept = np.exp(-delta * rate[h])
        S[b, h] = kept * before + delta * np.outer(into[b, h, t], x[b, h, t])
        y[b, h, t] = S[b, h].T @ out_of[b, h, t]
    return y, S
