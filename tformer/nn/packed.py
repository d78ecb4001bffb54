"""Padding left out: the real tokens of a batch side by side, in one long row.

B batch · S length with padding · N real tokens of all sequences · D d_model · H heads
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate

from torch import Tensor

from tformer.nn.attention import Mask, attend_in_pieces


def pack_tokens(x: Tensor, key_mask: Tensor) -> tuple[Tensor, list[int]]:
    """Lay the real tokens of x (B, S, D) side by side: (1, N, D), and their lengths.

    `key_mask` is bool (B, S), True = a real token.
    """
    return x[key_mask][None], key_mask.sum(dim=1).tolist()


def unpack_tokens(packed: Tensor, key_mask: Tensor) -> Tensor:
    """Put (1, N, D) back to (B, S, D); zeros where there was padding."""
    x = packed.new_zeros(*key_mask.shape, packed.shape[2])
    return x.masked_scatter(key_mask[:, :, None], packed)


def attend_to_segments(
    attend: Callable[..., Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Mask = None,
    *,
    segments: Sequence[int],
    bias: Mask = None,
    **options: object,
) -> Tensor:
    """Let each sequence attend to itself, where they lie side by side: (B, H, N, Dv).

    `segments` are the lengths of the sequences, N in all; mask and bias are of all
    tokens. `attend` is `scaled_dot_product_attention`, and the rest its arguments.
    """
    T, S, N = query.shape[2], key.shape[2], sum(segments)
    if not N == T == S:
        rule = f"must cover query and key, of {T} and {S}"
        raise ValueError(f"segments ({N} tokens in all) {rule}")
    ends = accumulate(segments)
    rows = [slice(end - n, end) for n, end in zip(segments, ends, strict=True) if n]
    pieces = zip(rows, rows, strict=True)
    attend = partial(attend, **options)
    inputs = query, key, value
    return attend_in_pieces(attend, pieces, *inputs, attn_mask=attn_mask, bias=bias)
