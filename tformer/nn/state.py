"""What all layers with a state share: its cache, its precision, how it begins.

B batch · H heads · T new tokens · Dk width of a key · Dv width of a value
"""

import math

import torch
from torch import Tensor, nn

from tformer.checks import check_at_least_0, check_positive


def no_autocast(x: Tensor) -> torch.autocast:
    """Keep the products of a `with` block in the dtype of x: autocast is for weights.

    A state is rounded again at each token; in 16 bits that would be seen.
    """
    device = "cpu" if x.is_meta else x.device.type  # meta has no autocast
    return torch.autocast(device, enabled=False)


def wide(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    log_decay: Tensor | None,
    state: Tensor | None,
    *,
    by_channel: bool = False,
    **each_token: Tensor,
) -> tuple[Tensor, ...]:
    """Take all to float32 at least, with zeros for what is not given.

    Raises a ValueError unless the shapes are those of `linear_attention_recurrent`;
    `each_token`, such as the delta rule's beta, is (B, H, T) as `log_decay`, which is
    (B, H, T, Dk) with `by_channel`.
    """
    if query.ndim != 4 or 0 in query.shape:
        raise ValueError(
            f"query must be (B, H, T, Dk), and not empty, not {tuple(query.shape)}"
        )
    B, H, T, Dk = query.shape
    Dv = value.shape[-1]
    shapes: dict[str, tuple[int, ...]] = {
        "key": (B, H, T, Dk),
        "value": (B, H, T, Dv),
        "state": (B, H, Dk, Dv),
        "log_decay": (B, H, T, Dk) if by_channel else (B, H, T),
    }
    if log_decay is None:
        log_decay = value.new_zeros(shapes["log_decay"])
    if state is None:
        state = value.new_zeros(shapes["state"])
    given = {"key": key, "value": value, "log_decay": log_decay, "state": state}
    for name, x in (given | each_token).items():
        shape = shapes.get(name, (B, H, T))
        if x.shape != shape:
            beside = f"with query {tuple(query.shape)}"
            raise ValueError(f"{name} must be {shape} {beside}, not {tuple(x.shape)}")
    dtype = torch.promote_types(value.dtype, torch.float32)
    every = (query, key, value, log_decay, state, *each_token.values())
    return tuple(x.to(dtype) for x in every)


def initial_rates(num_heads: int, width: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Draw log A of each head, and b, so that at first decays differ.

    α = exp(−A · softplus(… + b)): as in Mamba-2 (arXiv:2405.21060) A is from 1 to 16,
    and the step, softplus(b), from 0.001 to 0.1. Returns (num_heads,) and (width,).
    """
    log_rate = torch.empty(num_heads).uniform_(1, 16).log()
    step = torch.empty(width).uniform_(math.log(0.001), math.log(0.1)).exp()
    step_bias = step.expm1().log()  # of which softplus gives the step
    return nn.Parameter(log_rate), nn.Parameter(step_bias)


class StateCache:
    """The state of one layer, which has the same size after any number of tokens."""

    def __init__(self) -> None:
        self.length = 0
        self.state: Tensor | None = None  # (B, H, Dk, Dv)
        self.past: Tensor | None = None  # (B, K - 1, C), of a short convolution

    @property
    def nbytes(self) -> int:
        """The memory in bytes."""
        return sum(x.nbytes for x in (self.state, self.past) if x is not None)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        if self.state is not None:
            self.state = self.state.index_select(0, rows)
        if self.past is not None:
            self.past = self.past.index_select(0, rows)

    def truncate(self, length: int) -> None:
        """Raise, but where nothing has to be forgotten."""
        check_at_least_0(length=length)
        if length != self.length:
            raise ValueError(
                f"a state of {self.length} tokens cannot be cut back to {length}: it "
                "is a sum, in which no token can be told apart"
            )

    def copy(self, max_len: int) -> "StateCache":
        """Make a cache of its own with the same state; its size is always the same."""
        check_positive(max_len=max_len)
        other = StateCache()
        # Which are never changed in place.
        other.length, other.state, other.past = self.length, self.state, self.past
        return other
