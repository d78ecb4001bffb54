"""What attention may be given: each check names argument, value and rule."""

import math

import torch
from torch import Tensor

from tformer.checks import check_probability


def check_scores(
    query: Tensor,
    key: Tensor,
    attn_mask: Tensor | None,
    bias: Tensor | None,
    scale: float | None,
    softcap: float | None,
) -> None:
    """Raise unless these make scores; see `attention_weights`."""
    _check_heads("query", query)
    _check_heads("key", key)
    (B, H, T, Dh), (rows, G, S, width) = query.shape, key.shape
    if key.dtype != query.dtype:
        raise TypeError(f"key is {key.dtype} but query is {query.dtype}")
    if width != Dh:
        raise ValueError(
            f"key has head_dim {width} but query has {Dh}: {_both(query, key)}"
        )
    if rows != B:
        raise ValueError(f"key has batch {rows} but query has {B}: {_both(query, key)}")
    if H % G:
        raise ValueError(
            f"query has {H} heads, which is not a multiple of key's {G}: "
            f"{_both(query, key)}"
        )
    if attn_mask is not None and attn_mask.dtype != torch.bool:
        raise TypeError(
            f"attn_mask must be torch.bool (True = may attend), not {attn_mask.dtype}; "
            "what is added to the scores is `bias`"
        )
    if bias is not None and not bias.is_floating_point():
        raise TypeError(
            f"bias must be floating, not {bias.dtype}; a mask is `attn_mask`"
        )
    for name, added in (("attn_mask", attn_mask), ("bias", bias)):
        if added is not None and not _fits(added, (B, H, T, S)):
            raise ValueError(
                f"{name} must be (T, S) = ({T}, {S}), or have four axes and broadcast "
                f"to (B, H, T, S) = ({B}, {H}, {T}, {S}), not {_shape(added)}"
            )
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale ({scale}) must be finite")
    if softcap is not None and not 0 < softcap < math.inf:
        raise ValueError(f"softcap ({softcap}) must be above 0 and finite")


def check_values(key: Tensor, value: Tensor, dropout_p: float) -> None:
    """Raise unless each key has its value; see `scaled_dot_product_attention`."""
    _check_heads("value", value)
    if value.dtype != key.dtype:
        raise TypeError(f"value is {value.dtype} but key is {key.dtype}")
    if value.shape[:3] != key.shape[:3]:
        raise ValueError(
            "value and key must agree in batch, heads and length: "
            f"value is {_shape(value)}, key is {_shape(key)}"
        )
    if dropout_p:
        check_probability(dropout_p=dropout_p)


def check_sequences(d_model: int, **sequences: Tensor) -> None:
    """Raise unless every tensor is (B, length, D)."""
    for name, x in sequences.items():
        if x.ndim != 3 or x.shape[-1] != d_model:
            raise ValueError(
                f"{name} must be (batch, length, d_model = {d_model}), "
                f"not {tuple(x.shape)}"
            )


def _check_heads(name: str, x: Tensor) -> None:
    if x.ndim != 4:
        raise ValueError(
            f"{name} must be (batch, heads, length, width), not {_shape(x)}"
        )
    if 0 in x.shape:
        raise ValueError(f"{name} is empty: its shape is {_shape(x)}")
    if not x.is_floating_point():
        raise TypeError(f"{name} must be floating, not {x.dtype}")


def _fits(x: Tensor, full: tuple[int, ...]) -> bool:
    """Say whether a mask has its shape by intent: (B, S) might broadcast by luck."""
    if x.ndim == 2:
        return x.shape == full[2:]
    pairs = zip(x.shape, full, strict=False)
    return x.ndim == 4 and all(size in (1, whole) for size, whole in pairs)


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))


def _both(query: Tensor, key: Tensor) -> str:
    return f"query is {_shape(query)}, key is {_shape(key)}"
