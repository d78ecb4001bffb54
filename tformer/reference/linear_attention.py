"""Linear attention in NumPy: a state of fixed size in the place of keys and values.

B batch · H heads · T new tokens · D d_model · Dk width of a key · Dv width of a value
"""

from dataclasses import dataclass

import numpy as np

from tformer.checks import check_divisible
from tformer.reference.heads import merge_heads, split_heads
from tformer.reference.linear import Linear
from tformer.reference.masks import check_causal


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


def feature_map(x: np.ndarray) -> np.ndarray:
    """Make every number positive: elu(x) + 1."""
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


@dataclass(eq=False)
class LinearAttention:
    """Causal attention whose weights are φ(q)·φ(k) in the place of exp(q·k / √Dh)."""

    q_proj: Linear  # from D to D, and so are the others
    k_proj: Linear
    v_proj: Linear
    out_proj: Linear
    num_heads: int  # H, which divides D

    def __post_init__(self) -> None:
        check_divisible(d_model=len(self.q_proj.weight), num_heads=self.num_heads)

    def __call__(
        self,
        x: np.ndarray,
        *,
        attn_mask: np.ndarray | None = None,
        is_causal: bool = True,
    ) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D)."""
        check_causal(attn_mask, is_causal)
        q = feature_map(split_heads(self.q_proj(x), self.num_heads))  # (B, H, T, Dh)
        k = feature_map(split_heads(self.k_proj(x), self.num_heads))
        v = split_heads(self.v_proj(x), self.num_heads)
        ones = np.ones_like(v[..., :1])  # its sum is the normaliser
        values = np.concatenate((v, ones), axis=-1)
        output, _ = linear_attention_recurrent(q, k, values)
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
