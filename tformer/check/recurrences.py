"""Specs of layers with a state: the short convolution, Mamba-2."""

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


def rates(*shape: int) -> Array:
    """Draw numbers between 0 and 1, the same in each run."""
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
    # state-spaces#short-convolution
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
    oldest_left_out: You left out the oldest token: K are mixed, with the token itself.
        for i in range(K)) → for i in range(1, K))
    looks_ahead: You mixed a token with those after it: take those before.
        seen[b, t + i, c] → np.pad(seen, ((0, 0), (0, K), (0, 0)))[b, t + i + K - 1, c]
    centred: You mixed the tokens on both sides: only earlier ones count.
        seen[b, t + i, c] → np.pad(seen, ((0, 0), (0, K), (0, 0)))[b, t + i + K // 2, c]
    reshaped: You gave the weights another shape: they are (C, K), so transpose them.
        weight[c, i] * → weight.reshape(K, C)[i, c] *
    silu: You took silu of the result: that is done outside.
        return y, seen → return y / (1 + np.exp(-y)), seen
    residual: You added the tokens to the result: that is done outside.
        return y, seen → return y + x, seen
    # state-spaces#a-convolution-that-begins-anew
    begins_anew: You put zeros before the first token, whatever came before it.
        np.concatenate((past, x), 1) → np.concatenate((0 * past, x), 1)
    past_not_mixed: You mixed zeros before the first token: the past belongs there.
        seen[b, t + i, c] → seen[b, t + i, c] * (t + i >= K - 1)
    past_of_first_text: You put the past of the first text before all of them.
        np.concatenate((past, x), 1) →
            np.concatenate((np.repeat(past[:1], B, 0), x), 1)
    past_backwards: You put the past before the tokens the wrong way round.
        np.concatenate((past, x), 1) → np.concatenate((past[:, ::-1], x), 1)
    past_behind: You put the past behind the tokens: it came before them.
        np.concatenate((past, x), 1) → np.concatenate((x, past), 1)
    first_repeated: You repeated the first token, in place of what came before it.
        np.concatenate((past, x), 1) →
            np.concatenate((np.repeat(x[:, :1], K - 1, 1), x), 1)
    past_too_long: You keep K tokens: the next call needs the last K - 1.
        seen[:, T:] → seen[:, T - 1 :]
    past_too_short: You keep K - 2 tokens: the next call needs the last K - 1.
        seen[:, T:] → seen[:, T + 1 :]
    past_of_this_call: You keep tokens of this call alone: if they are few, earlier ones
        are needed, too.
        seen[:, T:] → x[:, max(T - K + 1, 0) :]
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


def _advanced(B: int, H: int, T: int, P: int, N: int) -> tuple[Array, ...]:
    """x, Δ, a, B, C, state."""
    x, step, rate = draw(B, H, T, P), rates(B, H, T), 1 + np.abs(draw(H, seed=4))
    into, out_of = draw(B, H, T, N, seed=5), draw(B, H, T, N, seed=6)
    return x, step, rate, into, out_of, draw(B, H, N, P, seed=7)


@Spec(
    Case("two tokens", _advanced(1, 1, 2, 2, 2)),
    Case("two heads", _advanced(1, 2, 4, 3, 3)),
    Case("a wider state", _advanced(2, 3, 3, 2, 5)),
    wrong="""
    # state-spaces#mamba-2
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
    decay_ignored: You left the decay out: the state grows with each token.
        kept * before → before
    forgets: You forgot the state at each token: it decays, and stays.
        kept * before → 0 * before
    rate_outside: You multiplied exp(-Δ) by the rate: it is in the exponent.
        np.exp(-delta * rate[h]) → np.exp(-delta) * rate[h]
    bilinear: You took (1 - Δa/2) / (1 + Δa/2): Mamba takes exp(-Δ a).
        np.exp(-delta * rate[h]) → (1 - delta * rate[h] / 2) / (1 + delta * rate[h] / 2)
    share_written: You wrote 1 - exp(-Δ a) in the place of Δ.
        delta * np.outer → (1 - kept) * np.outer
    softplus_twice: You took softplus of the step: it comes as it is to be used.
        delta, before = step[b, h, t] → delta, before = np.log1p(np.exp(step[b, h, t]))
    step_of_first: You took the step of the first token for all.
        = step[b, h, t] → = step[b, h, 0]
    into_of_first_head: You wrote into all heads by the B of the first.
        into[b, h, t] → into[b, 0, t]
    out_of_first_head: You read all heads by the C of the first.
        out_of[b, h, t] → out_of[b, 0, t]
    scaled: You divided what is read by √N: that is for attention.
        @ out_of[b, h, t] → @ out_of[b, h, t] / np.sqrt(out_of.shape[-1])
    written_transposed: You wrote x Bᵀ: here a row of the state is an entry of B.
        np.outer(into[b, h, t], x[b, h, t]) → np.outer(x[b, h, t], into[b, h, t])
    state_of_first_text: You began all texts with the state of the first.
        state.copy() → np.repeat(state[:1], len(state), 0)
    state_as_it_came: You return the state that came in: return that after the tokens.
        return y, S → return y, state
    state_transposed: Your state is (P, N): a row of it is an entry of B.
        return y, S → return y, S.swapaxes(-1, -2)
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
