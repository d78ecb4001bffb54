"""The KV cache: keys and values of the tokens so far, kept while a model writes.

B batch · G key/value heads · T new tokens · L tokens so far · Dh head_dim
"""

import torch
from torch import Tensor

from tformer.checks import check_at_least_0, check_positive


class KeyValueCache:
    """Keys and values of one attention, in memory that is taken once.

    The memory is taken when the first key comes, for `max_len` tokens of its shape,
    dtype and device. A new token is written in place after those before it: nothing is
    concatenated, and nothing is copied. The cache is for writing, not for training: an
    in-place change would spoil the gradients.

    Args:
        max_len: how many tokens there is room for; as many as come first if None.

    Raises:
        TypeError: `max_len` is not an int.
        ValueError: `max_len` is below 1.
    """

    def __init__(self, max_len: int | None = None) -> None:
        if max_len is not None:
            check_positive(max_len=max_len)
        self.max_len = max_len
        self.length = 0
        # What the newest keys and values were projected from.
        self._sources: list[_Source] = []
        self._storage: Tensor | None = None  # (2, B, G, max_len, Dh)

    @property
    def nbytes(self) -> int:
        """The memory in bytes, 2 · B · G · max_len · Dh · bytes of a number."""
        x = self._storage
        return 0 if x is None else x.numel() * x.element_size()

    @property
    def keys_values(self) -> tuple[Tensor, Tensor]:
        """The keys and the values so far, each (B, G, L, Dh): views, not copies."""
        if self._storage is None:
            raise ValueError("the cache is empty: no key has come yet")
        so_far = self._storage[:, :, :, : self.length]  # (2, B, G, L, Dh)
        return so_far[0], so_far[1]

    def append(
        self,
        key: Tensor,
        value: Tensor,
        *,
        sources: tuple[Tensor, ...] = (),
    ) -> tuple[Tensor, Tensor]:
        """Write T new keys and values after the others; return all, as `keys_values`.

        Args:
            key: (B, G, T, Dh).
            value: (B, G, T, Dh).
            sources: what the two were projected from, for `read`.

        Raises:
            TypeError: they have another dtype than the cache.
            ValueError: they have another B, G or Dh, there is no room left, or they
                want a gradient.
        """
        B, G, T, Dh = key.shape
        check_new(key, value, self._storage)
        if self._storage is None:
            self.max_len = T if self.max_len is None else self.max_len
            self._storage = key.new_empty(2, B, G, self.max_len, Dh)
        room = self._storage.shape[3]
        if self.length + T > room:
            raise ValueError(
                f"the cache is full: it has room for max_len = {room} tokens, "
                f"holds {self.length}, and {T} more came"
            )
        new = self._storage[:, :, :, self.length : self.length + T]  # a view
        new[0], new[1] = key, value
        self.length += T
        self._sources = [_Source(x) for x in sources]
        return self.keys_values

    def read(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return what was projected before from `key` and `value`, such as a memory.

        Raises:
            ValueError: what the cache holds was projected from others.
        """
        for i, (name, x) in enumerate((("key", key), ("value", value))):
            if not self._sources or not self._sources[i].is_still(x):
                raise ValueError(
                    f"the cache holds the {name}s of another `{name}` than this"
                )
        self._sources = [_Source(key), _Source(value)]
        return self.keys_values

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs.

        Args:
            rows: int64, each in [0, B). Another number of rows than B is allowed too,
                and costs a new allocation.
        """
        if self._storage is None:
            return
        so_far = self._storage[:, :, :, : self.length]
        chosen = so_far.index_select(1, rows)  # (2, rows, G, L, Dh), a copy
        _, B, G, room, Dh = self._storage.shape
        if len(rows) != B:
            self._storage = self._storage.new_empty(2, len(rows), G, room, Dh)
        self._storage[:, :, :, : self.length] = chosen

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these.

        Args:
            length: how many are kept, in [0, L].

        Raises:
            TypeError: `length` is not an int.
            ValueError: it is below 0, or the cache holds fewer tokens.
        """
        check_truncation(length, self.length)
        self.length = length
        self._sources = []  # what is left was not projected from the whole of them

    def copy(self, max_len: int) -> "KeyValueCache":
        """Make a cache of its own with the same tokens, and room for `max_len`.

        Raises:
            TypeError: `max_len` is not an int.
            ValueError: it is below 1, or below the number of tokens.
        """
        other = KeyValueCache(max_len)
        if self._storage is not None:
            other.append(*self.keys_values)
        return other


def check_new(key: Tensor, value: Tensor, storage: Tensor | None) -> None:
    """Raise unless new keys and values can be written into the memory of a cache.

    Args:
        key: (B, G, T, Dh), with any T.
        value: the same.
        storage: (2, B, G, room, Dh), or None if nothing has been written yet.

    Raises:
        TypeError: they have another dtype than the cache.
        ValueError: they have another B, G or Dh, or want a gradient.
    """
    if key.requires_grad or value.requires_grad:
        raise ValueError("a cache holds no gradients: use it under torch.no_grad()")
    held = key if storage is None else storage
    B, G, Dh, T = *held.shape[-4:-2], held.shape[-1], key.shape[2]
    for name, x in (("key", key), ("value", value)):
        if x.shape != (B, G, T, Dh):
            raise ValueError(
                f"{name} must be (B, G, T, Dh) = ({B}, {G}, {T}, {Dh}) as in the "
                f"cache, not {tuple(x.shape)}"
            )
        if x.dtype != held.dtype:
            raise TypeError(f"{name} is {x.dtype} but the cache holds {held.dtype}")


def check_truncation(length: int, held: int) -> None:
    """Raise unless a cache that holds so many tokens can be cut to this length."""
    check_at_least_0(length=length)
    if length > held:
        raise ValueError(
            f"length ({length}) must be at most {held}: so many tokens are held"
        )


class _Source:
    """What keys or values were projected from, as it was then."""

    def __init__(self, x: Tensor) -> None:
        self._x, self._changes = x, _changes(x)

    def is_still(self, x: Tensor) -> bool:
        """Say whether x is the same, or holds the same numbers."""
        now = _changes(self._x)
        changed = None not in (now, self._changes) and now != self._changes
        return not changed and (x is self._x or torch.equal(x, self._x))


def _changes(x: Tensor) -> int | None:
    """Count how often x was changed in place; None where torch does not count."""
    uncounted = torch.compiler.is_compiling() or x.is_inference()
    return None if uncounted else x._version
