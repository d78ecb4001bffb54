"""The spec of the delta rule, with a decay."""

import numpy as np

from tformer.check.recurrences import rates
from tformer.check.spec import Array, Case, Spec, draw


def _decay(*shape: int) -> Array:
    return -np.abs(draw(*shape, seed=8))


def _corrected(
    B: int, H: int, T: int, Dk: int, Dv: int, channels: bool = False
) -> tuple[Array, ...]:
    """Query, key, value, β, log α, state; each key of length 1."""
    key = draw(B, H, T, Dk, seed=1)
    key = key / np.sqrt((key**2).sum(-1, keepdims=True))
    decay = _decay(B, H, T, Dk) if channels else _decay(B, H, T)
    inputs = draw(B, H, T, Dk), key, draw(B, H, T, Dv, seed=2), rates(B, H, T)
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
    decay_sigmoid: You took the sigmoid of log α: α is its exponential.
        np.exp(log_decay[b, h, t]) → 1 / (1 + np.exp(-log_decay[b, h, t]))
    exp_twice: You took -exp of log α before the exponential: it is log α already.
        np.exp(log_decay[b, h, t]) → np.exp(-np.exp(log_decay[b, h, t]))
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
    beta_twice: You multiplied the state's answer by β as well: β is of the whole error.
        v - S[b, h].T @ k → v - beta[b, h, t] * (S[b, h].T @ k)
    beta_of_answer: You multiplied the state's answer by β, and not the value.
        v - S[b, h].T @ k → v - beta[b, h, t] * (S[b, h].T @ k)
        + beta[b, h, t] * np → + 1.0 * np
    beta_sigmoid: You took the sigmoid of β: it comes as it is.
        + beta[b, h, t] * np → + 1 / (1 + np.exp(-beta[b, h, t])) * np
    read_by_key: You read with the key: the query reads.
        S[b, h].T @ q → S[b, h].T @ k
    state_of_first_text: You began all texts with the state of the first.
        state.copy() → np.repeat(state[:1], len(state), 0)
    state_as_it_came: You return the state that came in: return that after the tokens.
        return output, S → return output, state
    state_transposed: Your state is (Dv, Dk): a row of it is a channel of the key.
        return output, S → return output, S.swapaxes(-1, -2)
    forgets: You forgot the state at each token: it decays, and stays.
        S[b, h] = alpha * before → S[b, h] = 0 * before
    # linear-attention#1d-twice
    query_normalised: You made the query of length 1: it comes as it is to be used.
        S[b, h].T @ q → S[b, h].T @ (q / np.sqrt(q @ q))
    scaled: You divided the query by √d: that was done before.
        S[b, h].T @ q → S[b, h].T @ q / np.sqrt(len(q))
    # linear-attention#the-error-of-a-state-that-has-not-decayed
    error_before: You took the error of the state before it decayed.
        v - S[b, h].T @ k → v - before.T @ k
    write_decayed: You let what a token writes decay at once: the state before it does.
        + beta[b, h, t] * np → + alpha * beta[b, h, t] * np
    decayed_after: You let the state decay after the token wrote: what it writes stays.
        S[b, h] = alpha * before → S[b, h] = before
        S[b, h] + beta[b, h, t] * np.outer(k, error) →
            alpha * (S[b, h] + beta[b, h, t] * np.outer(k, error))
    # state-spaces#kda
    one_for_all: You took the mean decay of the channels: each has its own.
        np.exp(log_decay[b, h, t]) → np.exp(np.mean(log_decay[b, h, t]))
    first_for_all: You let all channels decay as the first does.
        np.exp(log_decay[b, h, t]) → np.exp(np.ravel(log_decay[b, h, t])[0])
    # state-spaces#columns-that-decay-in-the-place-of-rows
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
