"""The gated delta rule in NumPy: a state that is corrected, token by token.

B batch · H heads · T new tokens · C tokens of a chunk · D d_model · Dk width of a key ·
Dv width of a value
"""

import math
from typing import Any

import numpy as np

from tformer.checks import check_divisible, check_positive
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.linear_attention import (
    attend_in_chunk,
    check_states,
    decay_matrix,
    or_zeros,
)
from tformer.reference.rms_norm import RMSNorm
from tformer.reference.weights import Weights, parts


def delta_rule_recurrent(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    beta: np.ndarray,
    *,
    log_decay: np.ndarray | None = None,
    state: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Correct a state token by token: S ← α S, S ← S + β k (v − Sᵀ k)ᵀ, then o = Sᵀ q.

    Args:
        query: (B, H, T, Dk).
        key: (B, H, T, Dk), each of length 1.
        value: (B, H, T, Dv).
        beta: how much of the error is corrected, (B, H, T).
        log_decay: log α of each token, (B, H, T), at most 0.
        state: S after the tokens before these, (B, H, Dk, Dv).

    Returns:
        The outputs (B, H, T, Dv), and the new state (B, H, Dk, Dv).

    Raises:
        ValueError: shapes do not match.
    """
    check_states(query, key, value, state, beta=beta, log_decay=log_decay)
    log_decay, S = or_zeros(query, value, log_decay, state)
    output = np.empty_like(value)
    for t in range(query.shape[2]):
        one = np.s_[:, :, t : t + 1]
        S = np.exp(log_decay[:, :, t, None, None]) * S  # (B, H, Dk, Dv)
        error = value[one] - key[one] @ S  # (B, H, 1, Dv)
        S = S + beta[:, :, t, None, None] * key[one].swapaxes(-2, -1) @ error
        output[one] = query[one] @ S
    return output, S


def delta_rule(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    beta: np.ndarray,
    *,
    log_decay: np.ndarray | None = None,
    state: np.ndarray | None = None,
    chunk: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute what `delta_rule_recurrent` does, a chunk of tokens at a time.

    Args:
        query: as in `delta_rule_recurrent`, and so is all else.
        key: (B, H, T, Dk).
        value: (B, H, T, Dv).
        beta: (B, H, T).
        log_decay: (B, H, T).
        state: (B, H, Dk, Dv).
        chunk: C, how many tokens are computed at once.

    Returns:
        The outputs (B, H, T, Dv), and the new state (B, H, Dk, Dv).

    Raises:
        ValueError: shapes do not match, or `chunk` is below 1.
    """
    check_states(query, key, value, state, beta=beta, log_decay=log_decay)
    check_positive(chunk=chunk)
    log_decay, S = or_zeros(query, value, log_decay, state)
    output = np.empty_like(value)
    for begin in range(0, query.shape[2], chunk):
        part = np.s_[:, :, begin : begin + chunk]
        k, lost = key[part], log_decay[part]
        u = corrected_values(k, value[part], beta[part][..., None], lost, S)
        output[part], S = attend_in_chunk(query[part], k, u, lost, S)
    return output, S


def corrected_values(
    k: np.ndarray,
    v: np.ndarray,
    rate: np.ndarray,
    log_decay: np.ndarray,
    state: np.ndarray,
) -> np.ndarray:
    """Solve uᵢ = βᵢ (vᵢ − what the state before i answers to kᵢ) for a chunk.

    Returns:
        u (B, H, C, Dv).
    """
    total = np.exp(log_decay.cumsum(-1))[..., None]  # (B, H, C, 1)
    among = np.tril(rate * (k @ k.swapaxes(-2, -1)) * decay_matrix(log_decay), -1)
    u = rate * (v - total * (k @ state))  # (B, H, C, Dv)
    for i in range(1, k.shape[2]):  # row i needs the rows before it, which are done
        u[:, :, i : i + 1] -= among[:, :, i : i + 1, :i] @ u[:, :, :i]
    return u


def unit_length(x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """Divide the vectors of the last axis by their length: x / √(Σ x² + ε)."""
    return x / np.sqrt((x**2).sum(-1, keepdims=True) + eps)


class GatedDeltaRule:
    """Causal attention with a state that forgets and corrects: the gated delta rule.

    Args:
        weights: "q_proj.weight", "k_proj.weight", "v_proj.weight" and
            "out_proj.weight", each (D, D); "beta_proj.weight" and "decay_proj.weight"
            (H, D); "log_rate" and "step_bias" (H,); and the weight of "norm", (Dh,).
        num_heads: heads H; divides D.
        eps: of the norm.

    Raises:
        ValueError: a name is wrong, or H does not divide D.
    """

    def __init__(self, weights: Weights, num_heads: int, *, eps: float = 1e-6) -> None:
        self.log_rate, self.step_bias = weights["log_rate"], weights["step_bias"]
        inner = {n: w for n, w in weights.items() if n not in ("log_rate", "step_bias")}
        names = ("q_proj", "k_proj", "v_proj", "out_proj", "beta_proj", "decay_proj")
        of = parts(inner, *names, "norm")
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            Linear(of[name]) for name in names[:4]
        )
        self.beta_proj, self.decay_proj = (Linear(of[name]) for name in names[4:])
        self.norm = RMSNorm(of["norm"], eps=eps)
        check_divisible(d_model=self.q_proj.weight.shape[0], num_heads=num_heads)
        self.num_heads = num_heads

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "GatedDeltaRule":
        """Make the twin of tformer's module."""
        return GatedDeltaRule(weights, module.num_heads, eps=module.norm.eps)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        q = unit_length(split_heads(self.q_proj(x), self.num_heads))  # (B, H, T, Dh)
        k = unit_length(split_heads(self.k_proj(x), self.num_heads))
        v = split_heads(self.v_proj(x), self.num_heads)
        q = q / math.sqrt(q.shape[-1])
        beta = 1 / (1 + np.exp(-self.beta_proj(x).swapaxes(1, 2)))  # (B, H, T)
        step = np.logaddexp(0, self.decay_proj(x) + self.step_bias)  # (B, T, H)
        log_decay = -(np.exp(self.log_rate) * step).swapaxes(1, 2)  # (B, H, T)
        output, _ = delta_rule(q, k, v, beta, log_decay=log_decay)
        return self.out_proj(merge_heads(self.norm(output)))  # (B, T, D)
