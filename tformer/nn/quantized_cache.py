"""A KV cache in bytes: keys and values as int8, with a scale a token and head.

B batch · G key/value heads · T new tokens · L tokens so far · Dh head_dim
"""

from torch import Tensor

from tformer.nn.cache import KeyValueCache
from tformer.nn.quantized import dequantize, quantize


class QuantizedCache:
    """Keys and values rounded to int8; what is read is dequantised.

    It stands wherever a `KeyValueCache` of self-attention does. A token's key in one
    head is a group: a scale for Dh numbers, and likewise for its value. So a new token
    changes no scale of those before it.

    Args:
        max_len: how many tokens there is room for.

    Raises:
        TypeError: `max_len` is not an int.
        ValueError: `max_len` is below 1.
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
        """Round T new keys and values, (B, G, T, Dh); return all, dequantised.

        Raises:
            TypeError: as in `KeyValueCache.append`.
            ValueError: the same.
        """
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
