"""Padding left out: the real tokens of a batch side by side, in one long row.

B batch · S length with padding · N real tokens of all sequences · D d_model · H heads
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tformer.nn.attention import scaled_dot_product_attention


def pack_tokens(x: Tensor, key_mask: Tensor) -> tuple[Tensor, list[int]]:
    """Lay the real tokens of x (B, S, D) side by side: (1, N, D), and their lengths.

    Args:
        x: (B, S, D).
        key_mask: bool (B, S), True = a real token.
    """
    return x[key_mask][None], key_mask.sum(dim=1).tolist()


def unpack_tokens(packed: Tensor, key_mask: Tensor) -> Tensor:
    """Put (1, N, D) back to (B, S, D); zeros where there was padding."""
    x = packed.new_zeros(*key_mask.shape, packed.shape[2])
    return x.masked_scatter(key_mask[:, :, None], packed)


def segment_mask(segments: Sequence[int], device: torch.device) -> Tensor:
    """Let tokens see those of their own sequence: bool (N, N)."""
    lengths = torch.tensor(segments, device=device)
    number = torch.arange(len(lengths), device=device).repeat_interleave(lengths)
    return number[:, None] == number


def attend_to_segments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    segments: Sequence[int],
    attend: Callable[..., Tensor] = scaled_dot_product_attention,
    **options: Any,
) -> Tensor:
    """Let each sequence attend to itself, where they lie side by side: (B, H, N, Dv).

    The same as attention with `segment_mask`, without what that would hide.

    Args:
        query: (B, H, N, Dh).
        key: (B, G, N, Dh).
        value: (B, G, N, Dv).
        segments: the length of each sequence; N in all.
        attend: what computes each.
        **options: of `scaled_dot_product_attention`.
    """
    lengths = [length for length in segments if length > 0]
    if sum(lengths) != query.shape[2] or key.shape[2] != query.shape[2]:
        raise ValueError(
            f"segments ({sum(lengths)} tokens in all) must cover query and key, of "
            f"{query.shape[2]} and {key.shape[2]}"
        )
    parts = (torch.split(x, lengths, dim=2) for x in (query, key, value))
    attended = [attend(*each, **options) for each in zip(*parts, strict=True)]
    return torch.cat(attended, dim=2)
