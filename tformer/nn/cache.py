"""The KV cache: keys and values of the tokens so far, kept while a model writes.

B batch · G key/value heads · T new tokens · L tokens so far · Dh head_dim
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tformer.checks import check_positive


class KeyValueCache:
    """Keys and values of one attention, in memory that is taken once.

    A new token's key and value are written in place after those before it: nothing is
    concatenated, and nothing is copied. The cache is for writing, not for training: an
    in-place change would spoil the gradients.

    Args:
        batch_size: sequences B.
        num_kv_heads: key/value heads G.
        max_len: how many tokens there is room for.
        head_dim: width Dh of a key and of a value.
        dtype: of the numbers; torch's default if not given.
        device: where to keep them.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1.
    """

    def __init__(
        self,
        batch_size: int,
        num_kv_heads: int,
        max_len: int,
        head_dim: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        check_positive(batch_size=batch_size, num_kv_heads=num_kv_heads)
        check_positive(max_len=max_len, head_dim=head_dim)
        shape = (2, batch_size, num_kv_heads, max_len, head_dim)
        self._storage = torch.empty(shape, dtype=dtype, device=device)
        self.max_len = max_len
        self.length = 0

    @property
    def batch_size(self) -> int:
        """The number of sequences B."""
        return self._storage.shape[1]

    @property
    def nbytes(self) -> int:
        """The memory in bytes, 2 · B · G · max_len · Dh · bytes of a number."""
        return self._storage.numel() * self._storage.element_size()

    @property
    def keys_values(self) -> tuple[Tensor, Tensor]:
        """The keys and the values so far, each (B, G, L, Dh): views, not copies."""
        keys, values = self._storage[:, :, :, : self.length]
        return keys, values

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write T new keys and values after the others; return all, as `keys_values`.

        Args:
            key: (B, G, T, Dh).
            value: (B, G, T, Dh).

        Raises:
            TypeError: they have another dtype than the cache.
            ValueError: they have another B, G or Dh, or there is no room left.
        """
        _, B, G, _, Dh = self._storage.shape
        end = self.length + key.shape[2]
        for name, x in (("key", key), ("value", value)):
            if x.shape != (B, G, key.shape[2], Dh):
                raise ValueError(
                    f"{name} must be (B, G, T, Dh) = ({B}, {G}, {key.shape[2]}, {Dh}) "
                    f"as in the cache, not {tuple(x.shape)}"
                )
            if x.dtype != self._storage.dtype:
                raise TypeError(
                    f"{name} is {x.dtype} but the cache holds {self._storage.dtype}"
                )
        if end > self.max_len:
            raise ValueError(
                f"the cache is full: it has room for max_len = {self.max_len} tokens, "
                f"holds {self.length}, and {key.shape[2]} more came"
            )
        keys, values = self._storage[:, :, :, :end]
        keys[:, :, self.length :] = key
        values[:, :, self.length :] = value
        self.length = end
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs.

        Args:
            rows: integer (B,), each in [0, B). Another number of rows than B is
                allowed too, and costs a new allocation.
        """
        chosen = self._storage[:, rows, :, : self.length]  # (2, rows, G, L, Dh), a copy
        if len(rows) != self.batch_size:
            _, _, G, _, Dh = self._storage.shape
            shape = (2, len(rows), G, self.max_len, Dh)
            self._storage = self._storage.new_empty(shape)
        self._storage[:, :, :, : self.length] = chosen


class DecoderLayerCache:
    """The two caches of a decoder layer: what was written, and what is read.

    Keys and values of the memory are projected once, when the first token is decoded.

    Args:
        target: of the self-attention; it grows with every token.
    """

    def __init__(self, target: KeyValueCache) -> None:
        self.target = target
        self.memory: KeyValueCache | None = None  # of the cross-attention

    @property
    def length(self) -> int:
        """How many tokens of the target have been seen."""
        return self.target.length

    @property
    def nbytes(self) -> int:
        """The memory of both, in bytes."""
        return self.target.nbytes + (self.memory.nbytes if self.memory else 0)

    def reorder(self, rows: Tensor) -> None:
        """Reorder the target. Rows may only change places if they read one source."""
        self.target.reorder(rows)


class ModelCache:
    """The caches of all layers of a model, which `model.new_cache(…)` makes.

    Args:
        layers: one `KeyValueCache` or `DecoderLayerCache` for each layer.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = layers

    @property
    def length(self) -> int:
        """How many tokens the model has seen: the position of the next one."""
        length: int = self.layers[0].length
        return length

    @property
    def nbytes(self) -> int:
        """The memory of all layers, in bytes."""
        return sum(layer.nbytes for layer in self.layers)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], in every layer."""
        for layer in self.layers:
            layer.reorder(rows)
