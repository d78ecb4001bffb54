"""Masks: boolean tensors in which True means "may attend".

B batch · H heads · T queries · S keys

The polarity is that of `F.scaled_dot_product_attention`, JAX and Hugging Face, and the
opposite of the masks of `nn.MultiheadAttention`, where True means "may not".
`tformer.interop` converts between the two.
"""

import torch
from torch import Tensor

from tformer.checks import check_bool, check_positive


def causal_mask(
    query_len: int,
    key_len: int | None = None,
    *,
    window: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """Let query i see key j where p - window < j <= p, with p = i + S - T: bool (T, S).

    Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762); the window is that of
    Mistral 7B (arXiv:2310.06825, section 2). S is T if not given. Else the *last* query
    lines up with the last key, as in decoding with a cache. torch's lines up the first.
    """
    T, S = query_len, query_len if key_len is None else key_len
    check_positive(query_len=T, key_len=S, window=1 if window is None else window)
    seen = torch.ones(T, S, dtype=torch.bool, device=device).tril(S - T)
    return seen if window is None else seen.triu(S - T - window + 1)


def length_mask(lengths: Tensor, max_len: int | None = None) -> Tensor:
    """Turn lengths into a mask: every query may see key j of row b if j < lengths[b].

    Args:
        lengths: integer (B,), each in [0, max_len].
        max_len: width S of the mask; the longest length if not given.

    Returns:
        bool (B, 1, 1, S), True at real tokens, False at padding: an `attn_mask`.
    """
    whole = not (lengths.is_floating_point() or lengths.is_complex())
    if not whole or lengths.dtype == torch.bool:
        raise TypeError(f"lengths must hold integers, not {lengths.dtype}")
    if lengths.ndim != 1 or not lengths.numel():
        raise ValueError(
            f"lengths must be (B,) with B >= 1, not {tuple(lengths.shape)}"
        )
    shortest, longest = int(lengths.min()), int(lengths.max())
    max_len = longest if max_len is None else max_len
    check_positive(max_len=max_len)
    if shortest < 0 or longest > max_len:
        raise ValueError(
            f"lengths ({shortest} to {longest}) must be in [0, max_len = {max_len}]"
        )
    positions = torch.arange(max_len, device=lengths.device)
    return (positions < lengths[:, None])[:, None, None]  # (B, 1, 1, S)


def combine_masks(*masks: Tensor | None) -> Tensor | None:
    """Allow what every mask allows: the logical and, broadcast; None allows everything.

    Args:
        masks: bool tensors whose shapes broadcast together, or None.

    Returns:
        bool, the broadcast shape; None if every mask is None.
    """
    combined: Tensor | None = None
    for mask in (m for m in masks if m is not None):
        check_bool("a mask", mask)
        try:
            combined = mask if combined is None else combined & mask
        except RuntimeError as error:
            raise ValueError(f"masks do not broadcast: {error}") from None
    return combined
