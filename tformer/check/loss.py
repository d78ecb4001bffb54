"""The spec of the loss: cross-entropy with label smoothing, over real tokens."""

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw

_TARGETS = np.array([[1, 4, 2, 6, 3], [5, 0, 2, 0, 0]])


def _softmax(row: Array) -> Array:
    """For a mistake: log_softmax of a softmax."""
    powers = np.exp(row - max(row))
    return np.asarray(powers / sum(powers))


def _along(axis: int, logits: Array) -> Array:
    """For a mistake: log_softmax along another axis."""
    shifted = logits - logits.max(axis, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True)))


def _without(row: Array, pad_id: int | None) -> Array:
    """For a mistake: logits without the padding token."""
    return row - max(row) - 1e4 * (np.arange(len(row)) == pad_id)


def _of_rows(losses: Array, real: Array) -> Array:
    """For a mistake: the mean of the means of rows."""
    counts = np.maximum(np.atleast_2d(real).sum(-1), 1)
    return np.asarray((np.atleast_2d(losses).sum(-1) / counts).mean())


@Spec(
    Case("one token", (draw(1, 3), np.array([2]), None, 0.0), exercise=False),
    Case("two rows with padding", (draw(2, 5, 7), _TARGETS, 0, 0.1)),
    Case(
        "no padding, no smoothing", (draw(2, 5, 7), _TARGETS, None, 0.0), exercise=False
    ),
    Case("another padding id", (draw(2, 5, 7), _TARGETS, 2, 0.2)),
    Case("much smoothing", (2 * draw(2, 5, 7), _TARGETS, 0, 0.4)),
    Case("nothing but padding", (draw(2, 7), np.array([3, 3]), 3, 0.1), exercise=False),
    Case("large logits", (500 * draw(4, 5), np.array([1, 2, 4, 3]), 0, 0.1)),
    wrong="""
    # loss#the-formula
    padding_counts: You let padding count as a target.
        targets != pad_id → targets == targets
    over_all: You divided by all tokens, padding included.
        np.sum(real) → real.size
    mean_of_rows: You took the mean of each row, and then of the rows.
        return np.asarray(np.sum(losses) / count) → return _of_rows(losses, real)
    by_batch: You divided by the number of rows, not of tokens.
        max(np.sum(real), 1) → len(targets)
    over_vocabulary: You took the mean over the vocabulary, too.
        np.sum(losses) / count → np.sum(losses) / count / V
    no_minus: You left out the minus.
        losses[at] -= → losses[at] +=
    not_reduced: You return the loss of each token; return their mean.
        np.sum(losses) / count → losses
    real_left_out: You counted padding, and left out what is real.
        targets != pad_id → targets == pad_id
    pad_is_0: You took 0 for the padding, whatever `pad_id` says.
        targets != pad_id → targets != 0
    last_padding: You hide tokens from the first padding on; only padding is hidden.
        targets != pad_id → np.cumsum(targets == pad_id, -1) == 0
    shifted: You shifted the targets by one.
        real = targets → targets = np.roll(targets, -1, -1); real = targets
    summed: You took the sum over the tokens, not the mean.
        np.sum(losses) / count → np.sum(losses)
    not_smoothed: You left out the smoothing.
        q = smoothing / V → q = 0.0
        1 - smoothing if → 1 if
    fixed_smoothing: You take a smoothing of 0.1, whatever comes in.
        V, losses = → smoothing = 0.1; V, losses =
    swapped: You exchanged smoothing and 1 - smoothing.
        q = smoothing / V → q = (1 - smoothing) / V
        1 - smoothing if → smoothing if
    only_smoothing: You left out the target's own 1 - smoothing.
        1 - smoothing if → 0.0 if
    target_without_share: The target has 1 - ε and ε / V: you left out the ε / V.
        q = smoothing / V → q = 0.0 if k == targets[at] else smoothing / V
    full_target: The target keeps 1, and the rest comes on top: it must sum to 1.
        1 - smoothing if → 1.0 if
    not_averaged: You gave each token ε; each has ε / V.
        q = smoothing / V → q = smoothing
    over_fewer: You spread ε by V - 2, as where padding and target are left out.
        q = smoothing / V → q = smoothing / (V - 2) * (k not in (targets[at], pad_id))
    over_fewer_at_others: You spread ε by V - 2, and over V - 1 tokens.
        q = smoothing / V → q = smoothing / (V - 2) * (k != targets[at])
    by_others: You divided ε by V - 1, and gave it to all V.
        q = smoothing / V → q = smoothing / (V - 1)
    half: You gave ε half.
        q = smoothing / V → q = smoothing / 2 / V
        1 - smoothing if → 1 - smoothing / 2 if
    divergence: You return the divergence from q: the entropy of q is missing.
        losses[at] -= q * log_p[k] if q else 0.0 →
            losses[at] -= q * (log_p[k] - np.log(q)) if q else 0.0
    no_softmax: You took the logits for log-probabilities.
        log_p = row - np.log(np.sum(np.exp(row))) → log_p = logits[at]
    probabilities: You took probabilities; take their logarithm.
        log_p = row - np.log(np.sum(np.exp(row))) →
            log_p = np.exp(row) / np.sum(np.exp(row))
    twice_softmax: You took the softmax before log_softmax: it takes logits.
        row = logits[at] - max(logits[at]) → row = _softmax(logits[at])
    padding_unlikely: You hid the padding token in the logits.
        row = logits[at] - max(logits[at]) →
            row = _without(logits[at], pad_id)
    kept_above_0: You added a small number before the logarithm: use log_softmax.
        row - np.log(np.sum(np.exp(row))) →
            np.log(np.exp(row) / np.sum(np.exp(row)) + 1e-9)
    others: You spread ε over the other tokens; it is spread over all V.
        q = smoothing / V → q = smoothing / (V - 1) * (k != targets[at])
    over_real: You left the padding token out when you spread ε.
        q = smoothing / V → q = 0.0 if k == pad_id else smoothing / V
    # loss#the-formula
    bits: You took logarithms to base 2.
        np.sum(losses) / count → np.sum(losses) / count / np.log(2)
    stops_at_padding: You stop at the first padding: only what is padding is left out.
        targets != pad_id → np.cumsum(targets == pad_id).reshape(targets.shape) == 0
    target_with_plus: You added the target's log-probability: its sign is a minus, too.
        losses[at] -= q * log_p[k] if q else 0.0 → losses[at] -= (
            smoothing / V - (1 - smoothing) * (k == targets[at])) * log_p[k]
    first_axis: You took the softmax along the first axis; it is along the last.
        log_p = row - np.log(np.sum(np.exp(row))) → log_p = _along(0, logits)[at]
    sigmoids: You took the sigmoid of each logit: take the softmax over all.
        losses[at] -= q * log_p[k] if q else 0.0 →
            losses[at] += np.logaddexp(0, logits[at][k]) - q * logits[at][k]
    over_tokens: You took the softmax over the tokens of a row: it is over the
        vocabulary.
        log_p = row - np.log(np.sum(np.exp(row))) → log_p = _along(-2, logits)[at]
    smoothing_of_all: You took the smoothing's mean over all tokens, padding included.
        if not real[at]: → if False:
        q = smoothing / V → q = smoothing / V * np.sum(real) / real.size
        k == targets[at] else → k == targets[at] and real[at] else
    padding_smoothed: You left padding out of the target's share, and not out of the
        smoothing's.
        if not real[at]: → if False:
        k == targets[at] else → k == targets[at] and real[at] else
    shifted_both: You dropped the last logits and the first target: they fit as they
        come.
        V, losses = → logits, targets = logits[..., :-1, :], targets[..., 1:]
            ; V, losses =
    perplexity: You return the perplexity, exp of the loss.
        np.sum(losses) / count → np.exp(np.sum(losses) / count)
    # loss#the-code
    overflow: You took exp of the logits as they are, or the logarithm of a softmax: use
        log_softmax.
        - max(logits[at]) →
    nan_of_padding: A batch of nothing but padding gives NaN: 0/0.
        max(np.sum(real), 1) → np.sum(real)
    """,
    properties=("state", "inputs", "layout", "precision", "gradient"),
)
def smoothed_loss(
    logits: Array, targets: Array, pad_id: int | None, smoothing: float
) -> Array:
    """Sum -q(k) log p(k) token by token."""
    V, losses = logits.shape[-1], np.zeros(targets.shape)
    real = targets != pad_id
    for at in np.ndindex(targets.shape):
        if not real[at]:
            continue
        row = logits[at] - max(logits[at])
        log_p = row - np.log(np.sum(np.exp(row)))
        for k in range(V):
            q = smoothing / V
            q += 1 - smoothing if k == targets[at] else 0.0
            losses[at] -= q * log_p[k] if q else 0.0
    count = max(np.sum(real), 1)
    return np.asarray(np.sum(losses) / count)
