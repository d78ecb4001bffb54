"""What stands in a copy instead of our own: torch's modules, its kernel, short checks.

A chapter's one-file copy takes a name from here, where it stands here, and not from the
package, unless the chapter offers the package's. What is None here is left out of a
copy: the call of a check, a decorator.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import LayerNorm, Linear  # noqa: F401
from torch.nn.functional import linear  # noqa: F401

check_positive = check_probability = check_sequences = check_values = None
in_float32 = None


def fused_attention(
    query, key, value, attn_mask=None, *, bias, is_causal, scale=None, dropout_p=0.0
):
    """Attend by torch's kernel, whose own flag lines up the first query and key."""
    by_flag = is_causal and attn_mask is bias is None and query.shape == key.shape
    if is_causal and not by_flag:
        future = causal_mask(query.shape[2], key.shape[2], device=query.device)
        attn_mask = combine_masks(attn_mask, future)
    if bias is not None and attn_mask is not None:
        bias = bias.masked_fill(~attn_mask, -math.inf)
    mask, grouped = attn_mask if bias is None else bias, query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(
        query, key, value, mask, dropout_p, by_flag, scale=scale, enable_gqa=grouped
    )


def scaled_dot_product_attention(query, key, value, attn_mask=None, **options):
    """Attend: softmax(Q Kᵀ / √d_k) V; (B, H, T, Dh) to (B, H, T, Dv)."""
    check_scores(query, key, attn_mask)
    return fused_attention(query, key, value, attn_mask, **options)


def causal_mask(query_len: int, key_len: int, *, device=None) -> Tensor:
    """Let query i see key j where j <= i + (S - T): itself and what came before."""
    ones = torch.ones(query_len, key_len, dtype=torch.bool, device=device)
    return ones.tril(key_len - query_len)  # (T, S)


def combine_masks(one: Tensor | None, two: Tensor) -> Tensor:
    """Allow what both masks allow."""
    return two if one is None else one & two


def check_key_mask(key_mask: Tensor, batch: int, key_len: int) -> Tensor:
    """Make a mask (B, S), True = a real token, one of attention: (B, 1, 1, S)."""
    if key_mask.dtype != torch.bool or key_mask.shape != (batch, key_len):
        raise ValueError(f"key_mask must be bool (B, S) = ({batch}, {key_len})")
    return key_mask[:, None, None, :]


def check_scores(_query, _key, attn_mask: Tensor | None, *_options) -> None:
    """Raise unless the mask says where a query may attend."""
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        raise TypeError(f"attn_mask must be bool, not {attn_mask.dtype}")


def check_divisible(**sizes: int) -> None:
    """Raise unless the first of two sizes is a multiple of the second."""
    (name, value), (divisor_name, divisor) = sizes.items()
    if value % divisor:
        raise ValueError(
            f"{name} ({value}) is no multiple of {divisor_name} ({divisor})"
        )
