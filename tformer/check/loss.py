"""The spec of the loss: cross-entropy with label smoothing, over real tokens."""

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw

_TARGETS = np.array([[1, 4, 2, 6, 3], [5, 0, 2, 0, 0]])


@Spec(
    Case("one token", (draw(1, 3), np.array([2]), None, 0.0), exercise=False),
    Case("two rows with padding", (draw(2, 5, 7), _TARGETS, 0, 0.1)),
    Case(
        "no padding, no smoothing", (draw(2, 5, 7), _TARGETS, None, 0.0), exercise=False
    ),
    Case("much smoothing", (2 * draw(2, 5, 7), _TARGETS, 0, 0.4)),
    Case("nothing but padding", (draw(2, 7), np.array([3, 3]), 3, 0.1), exercise=False),
    Case("large logits", (500 * draw(4, 5), np.array([1, 2, 4, 3]), 0, 0.1)),
    wrong="""
    # loss#the-formula
    padding_counts: You let padding count as a target.
        targets != pad_id → targets == targets
    over_all: You divided by all tokens, padding included.
        np.sum(real) → real.size
    summed: You took the sum over the tokens, not the mean.
        np.sum(losses) / count → np.sum(losses)
    not_smoothed: You left out the smoothing.
        q = smoothing / V → q = 0.0
        1 - smoothing if → 1 if
    others: You spread ε over the other tokens; it is spread over all V.
        q = smoothing / V → q = smoothing / (V - 1) * (k != targets[at])
    over_real: You left the padding token out when you spread ε.
        q = smoothing / V → q = 0.0 if k == pad_id else smoothing / V
    # loss#the-code
    overflow: You took exp of the logits as they are: use log_softmax.
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
    V, losses, real = logits.shape[-1], np.zeros(targets.shape), targets != pad_id
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
