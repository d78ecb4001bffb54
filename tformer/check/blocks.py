"""Specs of what a block adds: where its norms stand, and Granite's multipliers."""

import numpy as np

from tformer.check.attention import attention
from tformer.check.norms import rms_norm
from tformer.check.spec import Array, Case, Spec, draw

EPS = 1e-6


def _sublayers(B: int, T: int, D: int) -> tuple[Array, ...]:
    """Input, the matrices of two sub-layers, and the gains of their norms."""
    return draw(B, T, D), draw(D, D), draw(D, D, seed=1), draw(2, D, seed=2)


@Spec(
    Case("one token", _sublayers(1, 1, 2)),
    Case("three tokens", _sublayers(2, 3, 4)),
    Case("before", _sublayers(2, 3, 4), {"placement": "pre"}),
    Case("after the sum", _sublayers(1, 3, 5), {"placement": "post"}),
    wrong="""
    # block-today#the-sum-in-a-deep-model
    input_normalised: You normalised what goes into a sub-layer: here what comes out.
        "output": y + norm(f(y)) → "output": y + f(norm(y))
    sum_normalised: You normalised the sum: here only what is added to it.
        "output": y + norm(f(y)) → "output": norm(y + f(y))
    output_left: You did not normalise what a sub-layer adds.
        "output": y + norm(f(y)) → "output": y + f(y)
    both_normalised: You normalised what goes in as well as what comes out.
        "output": y + norm(f(y)) → "output": y + norm(f(norm(y)))
    stream_normalised: You added to the normalised input: the sum goes on as it is.
        "output": y + norm(f(y)) → "output": norm(y) + norm(f(y))
    residual_left_out: You left out what the sub-layer's output is added to.
        "output": y + norm(f(y)) → "output": norm(f(y))
    side_by_side: You gave both sub-layers the block's input: the second reads the sum.
        return np.asarray(w @ z) → return np.asarray(w @ (x[at] if w is w_f else z))
    gains_swapped: You exchanged the gains of the two norms.
        (w_a, gains[0]), (w_f, gains[1]) → (w_a, gains[1]), (w_f, gains[0])
    one_gain: You took the first gain for both norms.
        (w_f, gains[1]) → (w_f, gains[0])
    second_left_out: You left the second sub-layer without a norm.
        (w_f, gains[1]) → (w_f, None)
        return rms_norm(z, gain, EPS) →
            return z if gain is None else rms_norm(z, gain, EPS)
    # block-today#one-name-two-norms
    gain_of_post: With the norm after the sum, you normalised before the sub-layer.
        "post": norm(y + f(y)) → "post": y + f(norm(y))
    pre_not_normalised: With the norm before, you normalised what comes out.
        "pre": y + f(norm(y)) → "pre": y + norm(f(y))
    """,
)
def block(
    x: Array, w_a: Array, w_f: Array, gains: Array, *, placement: str = "output"
) -> Array:
    """Add two sub-layers, which multiply by a matrix each, to every token."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:2]):
        y = x[at]
        for w, gain in ((w_a, gains[0]), (w_f, gains[1])):

            def f(z: Array, w: Array = w) -> Array:
                return np.asarray(w @ z)

            def norm(z: Array, gain: Array = gain) -> Array:
                return rms_norm(z, gain, EPS)

            y = {
                "output": y + norm(f(y)),
                "pre": y + f(norm(y)),
                "post": norm(y + f(y)),
            }[placement]
        output[at] = y
    return output


def _model(T: int, D: int, V: int) -> tuple[Array, ...]:
    """Ids, embedding, and the matrices of attention and of the feed-forward part."""
    ids = np.random.default_rng(0).integers(0, V, (2, T))
    return ids, draw(V, D), *(draw(D, D, seed=i) for i in range(5))


_GRANITE = {"embedding": 3.0, "scores": 0.25, "residual": 0.22, "logits": 8.0}


@Spec(
    Case("all four", _model(4, 3, 5), _GRANITE),
    Case("the embedding", _model(3, 3, 5), {"embedding": 3.0}),
    Case("the scores", _model(4, 4, 6), {"scores": 0.3}),
    Case("the residual", _model(3, 2, 7), {"residual": 0.22}),
    Case("the logits", _model(3, 3, 4), {"logits": 4.0}),
    wrong="""
    # block-today#multipliers
    embedding_ignored: You left the factor of the embedded tokens out.
        embedding * table[ids] → table[ids]
    embedding_of_head: You multiplied the tied matrix: the logits are of it as it is.
        @ table.T → @ (embedding * table).T
    embedding_rooted: You multiplied the embedded tokens by √D as well.
        embedding * table[ids] → np.sqrt(table.shape[1]) * embedding * table[ids]
    scores_ignored: You divided the scores by √d: the multiplier stands in its place.
        scale=scores → scale=None
    root_as_well: You kept the division by √d beside the multiplier.
        scale=scores → scale=scores / np.sqrt(x.shape[-1])
    scores_divided: You divided the scores by the multiplier.
        scale=scores → scale=1 / scores
    residual_ignored: You left the factor of what is added out.
        x + residual * (heads → x + (heads
        x + residual * (normalised(x) → x + (normalised(x)
    residual_of_attention: You multiplied what attention adds, and not the network's.
        x + residual * (normalised(x) → x + (normalised(x)
    residual_of_sum: You multiplied the sum, and not only what is added.
        x = x + residual * (heads → x = residual * (x + heads
        x = x + residual * (normalised(x) → x = residual * (x + normalised(x)
    residual_of_input: You multiplied what goes on as it is, not what is added.
        x = x + residual * (heads → x = residual * x + (heads
        x = x + residual * (normalised(x) → x = residual * x + (normalised(x)
    logits_ignored: You left the division of the logits out.
        / logits →
    logits_multiplied: You multiplied the logits: they are divided.
        / logits → * logits
    """,
)
def multiplied(
    ids: Array,
    table: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array,
    w_f: Array,
    *,
    embedding: float = 1.0,
    scores: float = 1.0,
    residual: float = 1.0,
    logits: float = 1.0,
) -> Array:
    """Score the next token by one block with one head, with four multipliers."""
    gain = np.ones(table.shape[1])

    def normalised(x: Array) -> Array:
        return rms_norm(x, gain, EPS)

    x = embedding * table[ids]
    y = normalised(x)
    q, k, v = ((y @ w.T)[:, None] for w in (w_q, w_k, w_v))
    heads = attention(q, k, v, scale=scores, is_causal=True)[:, 0]
    x = x + residual * (heads @ w_o.T)
    x = x + residual * (normalised(x) @ w_f.T)
    return np.asarray(x @ table.T / logits)
