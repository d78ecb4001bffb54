"""Linear attention: a state of fixed size in the place of all keys and values.

B batch · H heads · T new tokens · C tokens of a chunk · D d_model · Dk width of a key ·
Dv width of a value
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive, check_sequences
from tformer.nn.heads import merge_heads, split_heads
from tformer.nn.state import StateCache, no_autocast, wide


def linear_attention_recurrent(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Read and write a state token by token: S ← α S + k vᵀ, then o = Sᵀ q.

    Katharopoulos et al. 2020, equations 18 to 20 (arXiv:2006.16236), without the
    normaliser; with α the retention of Sun et al. 2023 (arXiv:2307.08621). This is the
    definition; `linear_attention` computes the same in chunks.

    Args:
        query: (B, H, T, Dk).
        key: (B, H, T, Dk).
        value: (B, H, T, Dv).
        log_decay: log α of each token, (B, H, T), at most 0; nothing is forgotten if
            not given.
        state: S after the tokens before these, (B, H, Dk, Dv); zeros if not given.

    Returns:
        The outputs (B, H, T, Dv) in the dtype of `value`, and the new state
        (B, H, Dk, Dv), in float32 at least.
    """
    q, k, v, decay, S = wide(query, key, value, log_decay, state)
    outputs = []
    with no_autocast(query):
        for t in range(query.shape[2]):
            written = k[:, :, t, :, None] * v[:, :, t, None, :]  # (B, H, Dk, Dv)
            S = decay[:, :, t, None, None].exp() * S + written
            outputs.append(q[:, :, t : t + 1] @ S)  # (B, H, 1, Dv)
    return torch.cat(outputs, dim=2).to(value.dtype), S


def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    log_decay: Tensor | None = None,
    state: Tensor | None = None,
    chunk: int = 64,
) -> tuple[Tensor, Tensor]:
    """Compute what `linear_attention_recurrent` does, a chunk of tokens at a time.

    Within a chunk each token attends to those before it by a product of matrices; all
    that came before the chunk is in the state. `chunk` is C, how many tokens are
    computed at once; one for all is the parallel form.
    """
    check_positive(chunk=chunk)
    q, k, v, decay, S = wide(query, key, value, log_decay, state)
    outputs = []
    with no_autocast(query):
        for part in chunks(query.shape[2], chunk):
            output, S = attend_in_chunk(
                q[:, :, part], k[:, :, part], v[:, :, part], decay[:, :, part], S
            )
            outputs.append(output)
    return torch.cat(outputs, dim=2).to(value.dtype), S


def chunks(length: int, size: int) -> Iterator[slice]:
    """Cut positions 0 to length − 1 into slices of `size`; the last may reach beyond.

    An exported graph serves any length and holds no loop: there they are one slice.
    """
    if torch.compiler.is_exporting():
        yield slice(0, length)
        return
    for begin in range(0, length, size):
        yield slice(begin, begin + size)


def attend_in_chunk(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the outputs (B, H, C, Dv) of one chunk, and the state after it."""
    left = decay_matrix(log_decay)  # (B, H, C, C)
    total = log_decay.cumsum(-1)[..., None].exp()  # (B, H, C, 1): since the chunk began
    output = (q @ k.mT * left) @ v + total * (q @ state)
    at_end = left[:, :, -1, :, None]  # (B, H, C, 1): of what each token wrote
    state = total[:, :, -1:] * state + (k * at_end).mT @ v
    return output, state


def decay_matrix(log_decay: Tensor) -> Tensor:
    """Say what is left at token i of what token j wrote: α of j + 1 times … times αᵢ.

    Each product is a sum of logarithms of its own. As the difference of two sums since
    the chunk began, a token that forgets all would round away those after it.

    Of (B, H, C) it makes (B, H, C, C), 0 where j > i. The sums of these are empty,
    and their exponents are set to −∞.
    """
    C = log_decay.shape[-1]
    past = torch.ones(C, C, dtype=torch.bool, device=log_decay.device).tril()
    rows = log_decay[..., None].expand(*log_decay.shape, C)  # log αᵢ in row i
    sums = rows.masked_fill(~past.tril(-1), 0.0).cumsum(-2)  # of j + 1 to i
    return torch.exp(sums.masked_fill(~past, -torch.inf))


def feature_map(x: Tensor) -> Tensor:
    """Make every number positive: elu(x) + 1, as Katharopoulos et al. 2020 do.

    Below 0 that is exp(x), computed as such: the sum would keep no digit of exp(−17).
    """
    return F.relu(x) + x.clamp(max=0).exp()


class LinearAttention(nn.Module):
    """Causal attention whose weights are φ(q)·φ(k) in the place of exp(q·k / √Dh).

    Katharopoulos et al. 2020 (arXiv:2006.16236), with φ(x) = elu(x) + 1. The weights of
    a query are divided by their sum: a column of ones beside the values counts it.

    Args:
        d_model: width D of input and output.
        num_heads: heads H; divides D.
        bias: give the four projections a bias.
        chunk: how many tokens are computed at once.
    """

    def __init__(
        self, d_model: int, num_heads: int, *, bias: bool = False, chunk: int = 64
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_heads=num_heads, chunk=chunk)
        check_divisible(d_model=d_model, num_heads=num_heads)
        self.d_model, self.num_heads, self.chunk = d_model, num_heads, chunk
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(
        self, x: Tensor, *, is_causal: bool = True, cache: StateCache | None = None
    ) -> Tensor:
        """Map x (B, T, D) to (B, T, D); with a cache, x is what is new."""
        del is_causal  # it sees the past only, whatever is asked
        check_sequences(self.d_model, x=x)
        q = feature_map(split_heads(self.q_proj(x), self.num_heads))  # (B, H, T, Dh)
        k = feature_map(split_heads(self.k_proj(x), self.num_heads))
        v = split_heads(self.v_proj(x), self.num_heads)
        v = F.pad(v, (0, 1), value=1.0)  # (B, H, T, Dh + 1): its sum is the normaliser
        cache = StateCache() if cache is None else cache
        output, cache.state = linear_attention(
            q, k, v, state=cache.state, chunk=self.chunk
        )
        cache.length += x.shape[1]
        heads = output[..., :-1] / output[..., -1:]  # (B, H, T, Dh)
        return self.out_proj(merge_heads(heads))  # (B, T, D)

    def new_cache(self, max_len: int) -> StateCache:
        """Make an empty cache; its size does not depend on `max_len`."""
        check_positive(max_len=max_len)
        return StateCache()
