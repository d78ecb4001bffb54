"""Linear attention in NumPy: a state of fixed size in the place of keys and values.

B batch · H heads · T new tokens · D d_model · Dk width of a key · Dv width of a value
"""

from dataclasses import dataclass

import numpy as np

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

    Query and key are (B, H, T, Dk), values (B, H, T, Dv), log α (B, H, T), at most 0.
    Returns the outputs (B, H, T, Dv), and the new state S (B, H, Dk, Dv).
    """
    log_decay, S = decay_and_state(query, key, value, log_decay, state)
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


def decay_and_state(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    log_decay: np.ndarray | None,
    state: np.ndarray | None,
    *,
    by_channel: bool = False,
    **each_token: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Put zeros for what is not given, and hold all to their shapes.

    log α is (B, H, T), or with `by_channel` (B, H, T, Dk).
    """
    if query.ndim != 4 or 0 in query.shape:
        raise ValueError(
            f"query must be (B, H, T, Dk), and not empty, not {query.shape}"
        )
    (B, H, T, Dk), Dv = query.shape, value.shape[-1]
    decays = (B, H, T, Dk) if by_channel else (B, H, T)
    if log_decay is None:
        log_decay = np.zeros(decays, value.dtype)
    if state is None:
        state = np.zeros((B, H, Dk, Dv), value.dtype)
    wanted: dict[str, tuple[np.ndarray, tuple[int, ...]]] = {
        "key": (key, (B, H, T, Dk)),
        "value": (value, (B, H, T, Dv)),
        "state": (state, (B, H, Dk, Dv)),
        "log_decay": (log_decay, decays),
        **{name: (x, (B, H, T)) for name, x in each_token.items()},
    }
    for name, (x, shape) in wanted.items():
        if x.shape != shape:
            raise ValueError(
                f"{name} must be {shape} with query {query.shape}, not {x.shape}"
            )
    return log_decay, state
