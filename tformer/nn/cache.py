"""The KV cache: keys and values of the tokens so far, kept while a model writes.

B batch · G key/value heads · T new tokens · L tokens so far · Dh head_dim · W window
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import torch
from torch import Tensor, nn

from tformer.checks import check_at_least_0, check_positive

KeysValues = tuple[Tensor, Tensor]  # each (B, G, L, Dh)


class Cache(Protocol):
    """What attention and decoding ask of a cache of one attention."""

    @property
    def length(self) -> int:
        """How many tokens so far: the position of the next one."""

    @property
    def nbytes(self) -> int:
        """The memory in bytes."""

    def append(self, key: Tensor, value: Tensor) -> KeysValues:
        """Keep T new ones (B, G, T, Dh); return all that the newest may see."""

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these."""

    def copy(self, max_len: int) -> "Cache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""


class KeyValueCache:
    """Keys and values, in memory that is taken once; with a window those still seen.

    It is taken when the first key comes. A new token is written in place after those
    before it. With a window W a query sees W keys, its own among them: of the past the
    next one needs W - 1. The memory is then 2W, and where there is no room, the newest
    W - 1 move to the beginning: one copy in about W tokens. The cache is for writing,
    not for training: an in-place change would spoil the gradients.

    Args:
        max_len: how many tokens there is room for.
        window: of the attention; all keys are kept if None.
        spare: with a window so many older tokens stay, for `truncate` to go back.
    """

    def __init__(
        self, max_len: int, *, window: int | None = None, spare: int = 0
    ) -> None:
        check_positive(max_len=max_len, window=1 if window is None else window)
        check_at_least_0(spare=spare)
        self.max_len, self.window, self.spare = max_len, window, spare
        self.length = 0
        self.end = 0  # where the next key goes
        self.keys = self.values = torch.empty(0)  # (B, G, room, Dh)

    @property
    def nbytes(self) -> int:
        """The memory in bytes, 2 · B · G · room · Dh · bytes of a number."""
        return self.keys.nbytes + self.values.nbytes

    def append(self, key: Tensor, value: Tensor) -> KeysValues:
        """Write T new keys and values after the others.

        Args:
            key: (B, G, T, Dh).
            value: (B, G, T, Dv).

        Returns:
            all so far; with a window up to W - 1 before the new, and these: of which a
            query may see too many, which attention's `window` hides.
        """
        T, W = key.shape[2], self.window
        if self.length == 0:
            room = self.max_len if W is None else min(self.max_len, 2 * W + self.spare)
            self.keys = key.new_empty(*key.shape[:2], room, key.shape[3])
            self.values = value.new_empty(*value.shape[:2], room, value.shape[3])
        check_new(key, value, self)
        begin = 0 if W is None else max(0, self.end - (W - 1))  # the oldest still seen
        end = self.end + T
        if end > self.keys.shape[2]:  # the newest move to the beginning
            kept = slice(max(0, begin - self.spare), self.end)
            begin, end = begin - kept.start, end - kept.start
            keys = torch.cat((self.keys[:, :, kept], key), dim=2)
            values = torch.cat((self.values[:, :, kept], value), dim=2)
            self.end = min(end, (W or 0) - 1 + self.spare)
            self.keys[:, :, : self.end] = keys[:, :, end - self.end :]
            self.values[:, :, : self.end] = values[:, :, end - self.end :]
        else:
            keys, values = self.keys, self.values
            keys[:, :, self.end : end] = key
            values[:, :, self.end : end] = value
            self.end = end
        self.length += T
        return keys[:, :, begin:end], values[:, :, begin:end]

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], of as many rows as are named."""
        if self.length:
            self.keys, self.values = self.keys[rows], self.values[rows]

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these."""
        check_at_least_0(length=length)
        end = self.end - (self.length - length)
        if length > self.length:
            raise ValueError(f"length ({length}) must be at most {self.length}")
        if end < (length if self.window is None else min(length, self.window - 1)):
            gone = f"of {self.length} tokens the oldest are gone"
            rule = f"{gone}, and only spare = {self.spare} can be forgotten"
            raise ValueError(f"length ({length}) is too short: {rule}")
        self.length, self.end = length, end

    def copy(self, max_len: int) -> "KeyValueCache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""
        if max_len < self.length:
            raise ValueError(f"max_len ({max_len}) must be at least {self.length}")
        other = KeyValueCache(max_len, window=self.window, spare=self.spare)
        if self.length:
            held = slice(0, self.end)
            other.append(self.keys[:, :, held], self.values[:, :, held])
            other.length = self.length
        return other


class BlockCache:
    """The caches of a block: of the sequence, and of the memory that it reads.

    Keys and values of the memory are projected once, at the first call. The memory must
    not be changed meanwhile.
    """

    def __init__(self, sequence: Cache) -> None:
        self.sequence = sequence
        self.memory: Tensor | None = None
        self.of_memory: KeysValues | None = None

    def copy(self, max_len: int) -> "BlockCache":
        """Make a cache of its own with the same tokens; the memory is shared."""
        other = BlockCache(self.sequence.copy(max_len))
        other.memory, other.of_memory = self.memory, self.of_memory
        return other


class ModelCache:
    """The caches of all blocks of a model, which `model.new_cache(max_len)` makes."""

    def __init__(self, blocks: Iterable[BlockCache]) -> None:
        self.blocks = list(blocks)

    @property
    def length(self) -> int:
        """How many tokens the model has seen: the position of the next one."""
        return self.blocks[0].sequence.length

    @property
    def nbytes(self) -> int:
        """The memory of all blocks, in bytes."""
        of_memory = [x for each in self.blocks for x in each.of_memory or ()]
        held = sum(each.sequence.nbytes for each in self.blocks)
        return held + sum(x.nbytes for x in of_memory)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from row rows[i]. Only rows of one source change places."""
        for block in self.blocks:
            block.sequence.reorder(rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens of the sequence, in every block."""
        for block in self.blocks:
            block.sequence.truncate(length)

    def copy(self, max_len: int) -> "ModelCache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""
        return ModelCache(block.copy(max_len) for block in self.blocks)


def cache_of(attention: nn.Module, max_len: int) -> Cache:
    """Make the empty cache of an attention: of its own kind, if it has `new_cache`."""
    make: Callable[[int], Cache] | None = getattr(attention, "new_cache", None)
    if make is not None:
        return make(max_len)
    return KeyValueCache(max_len, window=getattr(attention, "window", None))


def check_new(key: Tensor, value: Tensor, cache: KeyValueCache) -> None:
    """Raise unless new keys and values can be written into the memory of a cache."""
    if key.requires_grad or value.requires_grad:
        raise ValueError("a cache holds no gradients: use it under torch.no_grad()")
    T = key.shape[2]
    for name, x, held in (("key", key, cache.keys), ("value", value, cache.values)):
        wanted = (*cache.keys.shape[:2], T, held.shape[3])
        if x.shape != wanted:
            rule = f"must be (B, G, T, Dh) = {wanted} as in the cache"
            raise ValueError(f"{name} {rule}, not {tuple(x.shape)}")
        if x.dtype != held.dtype:
            raise TypeError(f"{name} is {x.dtype} but the cache holds {held.dtype}")
    if cache.length + T > cache.max_len:
        room = f"it has room for max_len = {cache.max_len} tokens, holds {cache.length}"
        raise ValueError(f"the cache is full: {room}, and {T} more came")
