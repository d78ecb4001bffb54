"""Weights and caches as small whole numbers: in groups, each with its scale.

O outputs · I inputs · g numbers of a group ·
B batch · G key/value heads · T new tokens · L tokens so far · Dh head_dim
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tformer.checks import check_divisible, check_positive
from tformer.nn.cache import KeyValueCache
from tformer.nn.lora import LoRALinear


def quantize(
    x: Tensor, bits: int = 8, group_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Round to whole numbers: s = max |x| / (2^(bits − 1) − 1), codes = round(x / s).

    "Absmax": each group of neighbours on the last axis has a scale of its own, by which
    its largest number just fits (Dettmers et al. 2022, section 2, arXiv:2208.07339; in
    small groups Dettmers and Zettlemoyer 2023, arXiv:2212.09720).

    Args:
        x: (..., I).
        bits: from 2 to 8.
        group_size: g; divides I. All I numbers are one group if not given.

    Returns:
        codes, int8 (..., I), from -(2^(bits − 1) − 1) up to it, and scales (..., I / g)
        in the dtype of x.
    """
    if bits not in range(2, 9):
        raise ValueError(f"bits ({bits}) must be in [2, 8]")
    group_size = x.shape[-1] if group_size is None else group_size
    check_positive(group_size=group_size)
    check_divisible(width=x.shape[-1], group_size=group_size)
    most = 2 ** (bits - 1) - 1
    groups = x.reshape(*x.shape[:-1], -1, group_size)  # (..., I / g, g)
    scales = groups.abs().amax(dim=-1) / most  # (..., I / g)
    # A group of zeros has the scale 0, and any other does to divide by.
    divisors = scales.masked_fill(scales == 0, 1.0)[..., None]
    codes = (groups / divisors).round().clamp(-most, most)
    return codes.flatten(-2).to(torch.int8), scales


def dequantize(codes: Tensor, scales: Tensor) -> Tensor:
    """Multiply codes (..., I) by the scales (..., I / g) of their groups: (..., I)."""
    groups = codes.reshape(*scales.shape, -1).to(scales.dtype)
    return (groups * scales[..., None]).flatten(-2)


def pack(codes: Tensor) -> Tensor:
    """Put two codes of 4 bits into a byte: int8 (..., I) to uint8 (..., I / 2)."""
    nibbles = (codes + 8).to(torch.uint8)
    return nibbles[..., 0::2] | nibbles[..., 1::2] << 4


def unpack(packed: Tensor) -> Tensor:
    """Take the codes of `pack` out again: uint8 (..., I / 2) to int8 (..., I)."""
    return (torch.stack((packed & 15, packed >> 4), -1).to(torch.int8) - 8).flatten(-2)


class QuantizedLinear(nn.Module):
    """A linear layer that keeps its weights as codes and scales.

    The product is computed with the dequantised weights, made anew each time: what is
    saved is memory, and no time. For writing, not for training: the weights get no
    gradients.

    Args:
        original: the layer whose weights are rounded; its bias is kept as it is.
        bits: 8 or 4; codes of 4 bits share a byte.
        group_size: g, inputs with one scale; divides I. One scale an output if None.
    """

    codes: Tensor
    scales: Tensor

    def __init__(
        self, original: nn.Linear, *, bits: int = 8, group_size: int | None = None
    ) -> None:
        super().__init__()
        if bits not in (4, 8):
            raise ValueError(f"bits ({bits}) must be 4 or 8")
        if bits == 4:
            check_divisible(in_features=original.in_features, two=2)
        self.in_features = original.in_features
        self.out_features = original.out_features
        self.bits = bits
        codes, scales = quantize(original.weight.detach(), bits, group_size)
        self.register_buffer("codes", pack(codes) if bits == 4 else codes)
        self.register_buffer("scales", scales)  # (O, I / g)
        self.bias = original.bias

    @property
    def weight(self) -> Tensor:
        """The weights that the layer computes with, (O, I): made anew each time."""
        codes = unpack(self.codes) if self.bits == 4 else self.codes
        return dequantize(codes, self.scales)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        return F.linear(x, self.weight, self.bias)


def quantize_linears(
    model: nn.Module, *, bits: int = 8, group_size: int | None = None
) -> nn.Module:
    """Put a `QuantizedLinear` in the place of each linear layer of a model.

    Embeddings, norms and biases stay as they are, and so do logits that are made with
    the embedding. The model itself is changed, and returned; where a layer cannot be
    quantised, or holds a merged adapter, it is left as it was.
    """
    layers = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, LoRALinear) and module.merged is not None:
            raise ValueError(f"{name} is merged: remove_lora or unmerge_lora first")
        if isinstance(module, nn.Linear) and module is not model:
            try:
                layer = QuantizedLinear(module, bits=bits, group_size=group_size)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            layers[name] = layer
    for name, layer in layers.items():
        model.set_submodule(name, layer)
    return model


class QuantizedCache:
    """Keys and values rounded to int8; what is read is dequantised.

    It stands wherever a `KeyValueCache` of self-attention does. A token's key in one
    head is a group: a scale for Dh numbers, and likewise for its value. So a new token
    changes no scale of those before it.
    """

    def __init__(self, max_len: int) -> None:
        self._codes = KeyValueCache(max_len)  # int8, (B, G, L, Dh)
        self._scales = KeyValueCache(max_len)  # (B, G, L, 1)

    @property
    def length(self) -> int:
        """How many tokens so far."""
        return self._codes.length

    @property
    def nbytes(self) -> int:
        """The memory in bytes, 2 · B · G · max_len · (Dh + bytes of a scale)."""
        return self._codes.nbytes + self._scales.nbytes

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Round T new keys and values, (B, G, T, Dh); return all, dequantised."""
        if key.requires_grad or value.requires_grad:
            raise ValueError("a cache holds no gradients: use it under torch.no_grad()")
        (key, key_scales), (value, value_scales) = quantize(key), quantize(value)
        keys, values = self._codes.append(key, value)
        key_scales, value_scales = self._scales.append(key_scales, value_scales)
        return dequantize(keys, key_scales), dequantize(values, value_scales)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        self._codes.reorder(rows)
        self._scales.reorder(rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens."""
        self._codes.truncate(length)
        self._scales.truncate(length)

    def copy(self, max_len: int) -> "QuantizedCache":
        """Make a cache of its own with the same tokens, and room for so many."""
        other = QuantizedCache(max_len)
        other._codes = self._codes.copy(max_len)
        other._scales = self._scales.copy(max_len)
        return other
