"""Specs of SwiGLU, the feed-forward part with a gate, and of gpt-oss's form of it."""

from math import erf, sqrt

import numpy as np

from tformer.check.spec import Array, Case, Spec, draw


def sigmoid(z: Array) -> Array:
    """Map each number to (0, 1)."""
    return np.asarray(1 / (1 + np.exp(-z)))


def _gelu(z: Array) -> Array:
    return z * np.array([1 + erf(x / sqrt(2)) for x in z]) / 2


def _network(D: int, F: int) -> tuple[Array, Array, Array]:
    return draw(F, D), draw(F, D, seed=1), draw(D, F, seed=2)


# Gates of 900, -40 and 940, which exp cannot take.
_LARGE = np.array([[30.0, 20.0]])
_STEEP = np.array([[20.0, 15.0], [-1.0, -0.5], [30.0, 2.0]])


@Spec(
    Case("one vector", (draw(2), *_network(2, 3))),
    Case("as wide inside", (draw(2, 3), *_network(3, 3))),
    Case("three axes", (2 * draw(2, 3, 5), *_network(5, 7))),
    Case("four axes", (draw(2, 1, 3, 2), *_network(2, 3))),
    Case("rows", (draw(5, 4), *_network(4, 6))),
    Case("large gates", (_LARGE, _STEEP, draw(3, 2, seed=1), draw(2, 3, seed=2))),
    wrong="""
    # swiglu#gate-and-up-change-places-or-are-interleaved
    gate_and_up_swapped: You took silu of the up projection: it is taken of the gate.
        gate, up = w_gate → up, gate = w_gate
    halves_swapped: You sent x through w_up for the gate twice.
        gate, up = w_gate → gate, up = w_up
    gate_alone: You left w_up out: the gate must be multiplied by it.
        * sigmoid(gate) * up → * sigmoid(gate)
    # swiglu#the-formula
    added: You added gate and up; they are multiplied.
        * sigmoid(gate) * up → * sigmoid(gate) + up
    no_activation: You multiplied gate and up without silu between.
        * sigmoid(gate) * up → * up
    sigmoid: You took the sigmoid of the gate; silu is z · sigmoid(z).
        gate * sigmoid(gate) * up → sigmoid(gate) * up
    down_ignored: You left w_down out: your result has F numbers and not D.
        np.zeros(x.shape) → np.zeros((*x.shape[:-1], len(w_gate)))
        w_down @ ( → 1.0 * (
    both_active: You took silu of both; up stays as it is.
        * up → * up * sigmoid(up)
    after_product: You took silu of the product; it is taken of the gate alone.
        gate * sigmoid(gate) * up → gate * up * sigmoid(gate * up)
    other_sign: You took z · sigmoid(-z).
        sigmoid(gate) → sigmoid(-gate)
    exp_sign: You divided by 1 - exp(-z); silu divides by 1 + exp(-z).
        sigmoid(gate) → (1 / (1 - np.exp(-gate)))
    plain_exp: You wrote z / (1 + exp(z)) · exp(-z); silu is z / (1 + exp(-z)).
        sigmoid(gate) → (sigmoid(-gate) * np.exp(-gate))
    sigmoid_twice: You multiplied by the sigmoid twice.
        gate * sigmoid(gate) * up → gate * sigmoid(gate) ** 2 * up
    hard: You took hardswish of the gate, not silu.
        gate * sigmoid(gate) → gate * np.clip(gate + 3, 0, 6) / 6
    leaky: You took leaky relu of the gate, not silu.
        gate * sigmoid(gate) → np.where(gate > 0, gate, 0.01 * gate)
    squared_relu: You took the square of relu of the gate, not silu.
        gate * sigmoid(gate) → np.maximum(gate, 0) ** 2
    elu: You took elu of the gate, not silu.
        gate * sigmoid(gate) → np.where(gate > 0, gate, np.exp(gate) - 1)
    softplus: You took softplus of the gate, not silu.
        gate * sigmoid(gate) → np.logaddexp(0, gate)
    mish: You took mish of the gate, not silu.
        sigmoid(gate) → np.tanh(np.logaddexp(0, gate))
    reshaped: You gave weights another shape with reshape: transpose them.
        = w_gate @ x[at], → = x[at] @ w_gate.reshape(w_gate.shape[::-1]),
        w_up @ x[at] → x[at] @ w_up.reshape(w_up.shape[::-1])
        w_down @ (gate * sigmoid(gate) * up) →
            (gate * sigmoid(gate) * up) @ w_down.reshape(w_down.shape[::-1])
    silu_squared: You squared silu of the gate: multiply it by x w_upᵀ.
        gate * sigmoid(gate) * up → (gate * sigmoid(gate)) ** 2
    down_reshaped: You gave w_down another shape with reshape: transpose it.
        w_down @ (gate * sigmoid(gate) * up) →
            (gate * sigmoid(gate) * up) @ w_down.reshape(w_down.shape[::-1])
    gate_twice: You sent x through w_gate twice: the other factor is of w_up.
        w_up @ x[at] → gate
        gate, up = w_gate @ x[at], → gate = w_gate @ x[at]; up =
    back_by_up: You came back by the transpose of w_up: w_down leads back.
        = w_down @ → = w_up.T @
    back_by_gate: You came back by the transpose of w_gate: w_down leads back.
        = w_down @ → = w_gate.T @
    overflow: You wrote exp(z) / (1 + exp(z)): exp of a large z is infinite.
        sigmoid(gate) → (np.exp(gate) / (1 + np.exp(gate)))
    down_on_gate: You projected the gate, and multiplied by up after that.
        w_down @ (gate * sigmoid(gate) * up) →
            w_down @ (gate * sigmoid(gate)) * sum(up)
    silu_after: You took silu of the result; it is taken of the gate.
        gate * sigmoid(gate) * up) → gate * up)
        return output → return output * sigmoid(output)
    relu: You took relu of the gate: that is ReGLU.
        gate * sigmoid(gate) → np.maximum(gate, 0)
    tanh: You took tanh of the gate, not silu.
        gate * sigmoid(gate) → np.tanh(gate)
    quick_gelu: You took z · sigmoid(1.702 z), which is near GELU; silu has no factor.
        sigmoid(gate) → sigmoid(1.702 * gate)
    softmax: You took the softmax of the gate, not silu.
        gate * sigmoid(gate) →
            np.exp(gate - max(gate)) / np.exp(gate - max(gate)).sum()
    no_gate: You took silu of up and left the gate out.
        gate * sigmoid(gate) * up → up * sigmoid(up)
    residual: You added x; that is done outside.
        = w_down → = x[at] + w_down
    not_transposed: You multiplied by W; weights are (out, in), so it is x Wᵀ.
        = w_gate @ x[at], → = x[at] @ w_gate,
        w_up @ x[at] → x[at] @ w_up
        w_down @ → w_down.T @
    # swiglu#the-other-gelu
    gelu: You took GELU of the gate: that is GEGLU.
        gate * sigmoid(gate) → _gelu(gate)
    gelu_tanh: You took the tanh form of GELU of the gate: that is GEGLU.
        gate * sigmoid(gate) → gate * sigmoid(sqrt(8 / 3.141592653589793) * gate
        * up) → * (1 + 0.044715 * gate**2)) * up)
    """,
)
def swiglu(x: Array, w_gate: Array, w_up: Array, w_down: Array) -> Array:
    """Feed one vector forward at a time."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        gate, up = w_gate @ x[at], w_up @ x[at]
        output[at] = w_down @ (gate * sigmoid(gate) * up)
    return output


def _in_turn(D: int, F: int) -> tuple[Array, ...]:
    """Matrix and bias of gate and up, row by row in turn, and of the way back."""
    return draw(2 * F, D), draw(2 * F), draw(D, F, seed=1), draw(D, seed=2)


@Spec(
    Case("one vector", (draw(2), *_in_turn(2, 2))),
    Case("rows", (draw(5, 4), *_in_turn(4, 3)), {"limit": 0.7}),
    Case("three axes", (4 * draw(2, 3, 3), *_in_turn(3, 4)), {"limit": 2.0}),
    Case("another factor", (draw(3, 2), *_in_turn(2, 3)), {"alpha": 0.8}),
    Case("beyond the bounds", (20 * draw(3, 2), *_in_turn(2, 3))),
    wrong="""
    # swiglu#gate-and-up-change-places-or-are-interleaved
    halves: You took the first half of the rows for the gate: the rows go in turn.
        both[0::2], both[1::2] → np.split(both, 2)
    up_first: You took the even rows for up: they are the gate's.
        gate, up = both → up, gate = both
    # swiglu#clamped
    bounds_ignored: You left the bounds out.
        np.minimum(gate, limit) → gate
        np.clip(up, -limit, limit) → up
    gate_not_bounded: You left the bound of the gate out.
        np.minimum(gate, limit) → gate
    up_not_bounded: You left the bounds of up out.
        np.clip(up, -limit, limit) → up
    gate_bounded_below: You bounded the gate on both sides: it is bounded above alone.
        np.minimum(gate, limit) → np.clip(gate, -limit, limit)
    up_bounded_above: You bounded up above alone: it has a bound on both sides.
        np.clip(up, -limit, limit) → np.minimum(up, limit)
    fixed_bound: You bounded by 7, whatever comes in.
        np.minimum(gate, limit) → np.minimum(gate, 7)
        np.clip(up, -limit, limit) → np.clip(up, -7, 7)
    bounded_after: You bounded what is multiplied, not the factors.
        np.minimum(gate, limit) → gate
        np.clip(up, -limit, limit) → up
        (up + 1) * gate * sigmoid(alpha * gate) →
            np.clip((up + 1) * gate * sigmoid(alpha * gate), -limit, limit)
    one_left_out: You multiplied by up: 1 is added to it.
        (up + 1) → up
    one_before_bound: You added 1 to up before the bounds: it comes after them.
        np.clip(up, -limit, limit) → np.clip(up + 1, -limit, limit) - 1
    one_to_gate: You added 1 to the gate: it is added to up.
        (up + 1) * gate * → up * (gate + 1) *
    factor_ignored: You left α out: that is the gate of SwiGLU.
        sigmoid(alpha * gate) → sigmoid(gate)
    fixed_factor: You multiplied by 1.702 in the sigmoid, whatever comes in.
        sigmoid(alpha * gate) → sigmoid(1.702 * gate)
    factor_outside: You multiplied the gate by α outside of the sigmoid as well.
        * gate * sigmoid → * alpha * gate * sigmoid
    sigmoid_alone: You took the sigmoid of the gate; it multiplies the gate.
        * gate * sigmoid → * sigmoid
    biases_ignored: You left the biases of gate and up out.
        w_in @ x[at] + b_in → w_in @ x[at]
    last_bias_ignored: You left the bias of the way back out.
        + b_out →
    biases_in_halves: You took the biases in halves: they go in turn, as the rows do.
        w_in @ x[at] + b_in → w_in @ x[at] + b_in.reshape(2, -1).T.ravel()
    gate_bounded_below_alone: You bounded the gate below: it is bounded above.
        np.minimum(gate, limit) → np.maximum(gate, -limit)
    gelu: You took GELU of the gate: it is z · sigmoid(α z).
        gate * sigmoid(alpha * gate) → _gelu(gate)
    added: You added gate and up; they are multiplied.
        (up + 1) * gate → up + 1 + gate
    one_to_both: You added 1 to the gate as well: it is added to up alone.
        (up + 1) * gate → (up + 1) * (gate + 1)
    residual: You added x; that is done outside.
        = w_out @ → = x[at] + w_out @
    """,
)
def clamped_swiglu(
    x: Array,
    w_in: Array,
    b_in: Array,
    w_out: Array,
    b_out: Array,
    *,
    limit: float = 7.0,
    alpha: float = 1.702,
) -> Array:
    """Feed one vector forward at a time, by rows of gate and up in turn."""
    output = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        both = w_in @ x[at] + b_in
        gate, up = both[0::2], both[1::2]
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
        output[at] = w_out @ ((up + 1) * gate * sigmoid(alpha * gate)) + b_out
    return output
