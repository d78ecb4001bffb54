"""Linear attention in NumPy: a state of fixed size in the place of keys and values.

B batch · H heads · T new tokens · C tokens of a chunk · D d_model · Dk width of a key ·
Dv width of a value
"""

from typing import Any

import numpy as np

from tformer.checks import check_divisible, check_positive
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.weights import Weights, parts


def linear_attention_recurrent(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    log_decay: np.ndarray | None = None,
    state: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Read and write a state token by token: S ← α S + k vᵀ, then o = Sᵀ q.

    Args:
        query: (B, H, T, Dk).
        key: (B, H, T, Dk).
        value: (B, H, T, Dv).
        log_decay: log α of each token, (B, H, T), at most 0.
        state: S after the tokens before these, (B, H, Dk, Dv).

    Returns:
        The outputs (B, H, T, Dv), and the new state (B, H, Dk, Dv).

    Raises:
        ValueError: shapes do not match.
    """
    check_states(query, key, value, state, log_decay=log_decay)
    log_decay, S = or_zeros(query, value, log_decay, state)
    output = np.empty_like(value)
    for t in range(query.shape[2]):
        written = key[:, :, t, :, None] * value[:, :, t, None, :]  # (B, H, Dk, Dv)
        S = np.exp(log_decay[:, :, t, None, None]) * S + written
        output[:, :, t : t + 1] = query[:, :, t : t + 1] @ S  # (B, H, 1, Dv)
    return output, S


def linear_attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    log_decay: np.ndarray | None = None,
    state: np.ndarray | None = None,
    chunk: int = 64,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute what `linear_attention_recurrent` does, a chunk of tokens at a time.

    Args:
        query: as in `linear_attention_recurrent`, and so is all else.
        key: (B, H, T, Dk).
        value: (B, H, T, Dv).
        log_decay: (B, H, T).
        state: (B, H, Dk, Dv).
        chunk: C, how many tokens are computed at once.

    Returns:
        The outputs (B, H, T, Dv), and the new state (B, H, Dk, Dv).

    Raises:
        ValueError: shapes do not match, or `chunk` is below 1.
    """
    check_states(query, key, value, state, log_decay=log_decay)
    check_positive(chunk=chunk)
    log_decay, S = or_zeros(query, value, log_decay, state)
    output = np.empty_like(value)
    for begin in range(0, query.shape[2], chunk):
        part = np.s_[:, :, begin : begin + chunk]
        output[part], S = attend_in_chunk(
            query[part], key[part], value[part], log_decay[part], S
        )
    return output, S


def attend_in_chunk(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    log_decay: np.ndarray,
    state: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the outputs (B, H, C, Dv) of one chunk, and the state after it."""
    left = decay_matrix(log_decay)  # (B, H, C, C)
    total = np.exp(log_decay.cumsum(-1))[..., None]  # (B, H, C, 1): since the beginning
    output = (q @ k.swapaxes(-2, -1) * left) @ v
    output += total * (q @ state)
    at_end = left[:, :, -1, :, None]  # (B, H, C, 1): of what each token wrote
    written = (k * at_end).swapaxes(-2, -1) @ v
    return output, total[:, :, -1:] * state + written


def decay_matrix(log_decay: np.ndarray) -> np.ndarray:
    """Say what is left at token i of what token j wrote: α of j + 1 times … times αᵢ.

    Args:
        log_decay: (B, H, C).

    Returns:
        (B, H, C, C), 0 where j > i.
    """
    past = np.tri(log_decay.shape[-1], dtype=bool)
    rows = np.where(np.tril(past, -1), log_decay[..., None], 0.0)  # log αᵢ in row i
    return np.exp(np.where(past, rows.cumsum(-2), -np.inf))  # sums of j + 1 to i


def feature_map(x: np.ndarray) -> np.ndarray:
    """Make every number positive: elu(x) + 1."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


class LinearAttention:
    """Causal attention whose weights are φ(q)·φ(k) in the place of exp(q·k / √Dh).

    Args:
        weights: "q_proj.weight", "k_proj.weight", "v_proj.weight" and
            "out_proj.weight", each (D, D), and, or not, their biases.
        num_heads: heads H; divides D.

    Raises:
        ValueError: a name is wrong, or H does not divide D.
    """

    def __init__(self, weights: Weights, num_heads: int) -> None:
        of = parts(weights, "q_proj", "k_proj", "v_proj", "out_proj")
        self.q_proj = Linear(of["q_proj"])
        self.k_proj = Linear(of["k_proj"])
        self.v_proj = Linear(of["v_proj"])
        self.out_proj = Linear(of["out_proj"])
        check_divisible(d_model=self.q_proj.weight.shape[0], num_heads=num_heads)
        self.num_heads = num_heads

    @staticmethod
    def from_torch(module: Any, weights: Weights) -> "LinearAttention":
        """Make the twin of tformer's module."""
        return LinearAttention(weights, module.num_heads)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        q = feature_map(split_heads(self.q_proj(x), self.num_heads))  # (B, H, T, Dh)
        k = feature_map(split_heads(self.k_proj(x), self.num_heads))
        v = split_heads(self.v_proj(x), self.num_heads)
        ones = np.ones_like(v[..., :1])  # its sum is the normaliser
        output, _ = linear_attention(q, k, np.concatenate((v, ones), axis=-1))
        return self.out_proj(merge_heads(output[..., :-1] / output[..., -1:]))


def check_states(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    state: np.ndarray | None,
    **each_token: np.ndarray | None,
) -> None:
    """Raise unless the shapes are those of `linear_attention_recurrent`."""
    if query.ndim != 4 or 0 in query.shape:
        raise ValueError(
            f"query must be (B, H, T, Dk), and not empty, not {query.shape}"
        )
    B, H, T, Dk = query.shape
    wanted: dict[str, tuple[np.ndarray | None, tuple[int, ...]]] = {
        "key": (key, (B, H, T, Dk)),
        "value": (value, (B, H, T, value.shape[-1])),
        "state": (state, (B, H, Dk, value.shape[-1])),
        **{name: (x, (B, H, T)) for name, x in each_token.items()},
    }
    for name, (x, shape) in wanted.items():
        if x is not None and x.shape != shape:
            raise ValueError(
                f"{name} must be {shape} with query {query.shape}, not {x.shape}"
            )


def or_zeros(
    query: np.ndarray,
    value: np.ndarray,
    log_decay: np.ndarray | None,
    state: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Put zeros for a decay and a state that are not given."""
    B, H, T, Dk = query.shape
    if log_decay is None:
        log_decay = np.zeros((B, H, T), value.dtype)
    if state is None:
        state = np.zeros((B, H, Dk, value.shape[-1]), value.dtype)
    return log_decay, state
