"""From torch's masks to ours, and back.

B batch · H heads · T queries · S keys

The boolean masks of `nn.MultiheadAttention` and `nn.Transformer` say where a query may
*not* attend, ours say where it may. The `attn_mask` of
`F.scaled_dot_product_attention` is like ours already.
"""

import math

import torch
from torch import Tensor

from tformer.checks import check_bool, check_divisible


def attn_mask_from_torch(mask: Tensor, *, num_heads: int | None = None) -> Tensor:
    """Turn the `attn_mask` of `nn.MultiheadAttention` into ours, True = may attend.

    Of (T, S), or of (B · H, T, S) with `num_heads` H, to bool (T, S) or (B, H, T, S).
    Theirs is bool, True = may *not* attend, or float, 0 = may and -inf = may not.

    Raises:
        TypeError: `mask` is neither boolean nor floating.
        ValueError: it holds other numbers than 0 and -inf, or a shape is wrong.
    """
    allowed = _allowed(mask)
    if mask.ndim == 2:
        return allowed  # (T, S)
    if mask.ndim != 3:
        shape = tuple(mask.shape)
        raise ValueError(f"mask must be (T, S) or (B * H, T, S), not {shape}")
    if num_heads is None:
        full = f"(B * H, T, S) = {tuple(mask.shape)}"
        raise ValueError(f"num_heads must be given for a mask {full}")
    check_divisible(**{"the first size of mask": len(mask), "num_heads": num_heads})
    return allowed.reshape(-1, num_heads, *mask.shape[1:])  # (B, H, T, S)


def attn_mask_to_torch(
    mask: Tensor,
    *,
    batch: int | None = None,
    num_heads: int | None = None,
    dtype: torch.dtype = torch.bool,
) -> Tensor:
    """Turn our `attn_mask` into that of `nn.MultiheadAttention`, True = may not.

    Args:
        mask: bool (T, S), (H, T, S) or (B, H, T, S), where B and H may be 1; T and S
            in full, as torch does not broadcast them. True = may attend.
        batch: B, where `mask` does not say it: torch wants a mask for every head of
            every row, unless one (T, S) serves all.
        num_heads: H, likewise.
        dtype: torch.bool, or a floating one for 0 and -inf.

    Returns:
        (T, S) if `mask` is alike for all rows and heads, else (B · H, T, S).

    Raises:
        TypeError: `mask` is not boolean, or `dtype` is neither boolean nor floating.
        ValueError: a size is missing, or not the mask's.
    """
    check_bool("mask", mask)
    if not 2 <= mask.ndim <= 4:
        rule = "(T, S), (H, T, S) or (B, H, T, S)"
        raise ValueError(f"mask must be {rule}, not {tuple(mask.shape)}")
    mask = mask[(None,) * (4 - mask.ndim)]  # (B or 1, H or 1, T, S)
    if mask.shape[:2] == (1, 1):
        return _for_torch(mask[0, 0], dtype)  # (T, S)
    sizes = []
    given = {"batch": batch, "num_heads": num_heads}
    for (name, size), own in zip(given.items(), mask.shape, strict=False):
        if size is None and own == 1:
            raise ValueError(f"{name} must be given for a mask {tuple(mask.shape)}")
        if size is not None and own not in (1, size):
            raise ValueError(f"{name} ({size}) must be that of mask ({own})")
        sizes.append(own if size is None else size)
    full = mask.expand(*sizes, -1, -1)  # (B, H, T, S)
    return _for_torch(full.flatten(0, 1), dtype)  # (B · H, T, S)


def key_mask_from_torch(mask: Tensor) -> Tensor:
    """Turn torch's `key_padding_mask` into our `key_mask`, True = a real token.

    Both are (B, S). Theirs is bool, True = padding, or float, 0 = a token and -inf =
    padding; what is raised is as in `attn_mask_from_torch`.
    """
    _check_rows(mask)
    return _allowed(mask)


def key_mask_to_torch(mask: Tensor, *, dtype: torch.dtype = torch.bool) -> Tensor:
    """Turn our `key_mask` into torch's `key_padding_mask`, True = padding.

    `mask` is (B, S), and so is what is returned; `dtype` and what is raised are as in
    `attn_mask_to_torch`.
    """
    check_bool("mask", mask)
    _check_rows(mask)
    return _for_torch(mask, dtype)


def _allowed(mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return ~mask
    if not mask.is_floating_point():
        raise TypeError(f"mask must be boolean or floating, not {mask.dtype}")
    allowed = mask == 0
    if not (allowed | (mask == -math.inf)).all():
        raise ValueError(
            "mask holds other numbers than 0 and -inf: what is added to the scores "
            "is no mask but a `bias`"
        )
    return allowed


def _for_torch(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype == torch.bool:
        return ~allowed
    if not dtype.is_floating_point:
        raise TypeError(f"dtype must be torch.bool or floating, not {dtype}")
    zeros = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return zeros.masked_fill(~allowed, -math.inf)


def _check_rows(mask: Tensor) -> None:
    if mask.ndim != 2:
        raise ValueError(f"mask must be (B, S), not {tuple(mask.shape)}")
