"""A KV cache that forgets what lies before the window: its memory does not grow.

B batch · G key/value heads · T new tokens · W window · Dh head_dim
"""

import torch
from torch import Tensor

from tformer.checks import check_positive
from tformer.nn.cache import check_new, check_truncation


class RollingCache:
    """Keys and values of the newest tokens, for an attention with a window.

    A query sees W keys, its own among them: so of the past the next query needs W - 1.
    The memory holds 2W, taken when the first key comes. New tokens are written in place
    after the others. When there is no room, the newest W - 1 move to the beginning: one
    copy in about W tokens. So keys always lie side by side, in their order, which a
    ring, written over from its beginning again, would not have.

    It has the methods of `KeyValueCache` that self-attention needs.

    Args:
        window: how many keys a query sees, itself included: W.

    Raises:
        TypeError: `window` is not an int.
        ValueError: `window` is below 1.
    """

    def __init__(self, window: int) -> None:
        check_positive(window=window)
        self.window = window
        # So many older tokens stay, for `truncate` to take back: set before the first.
        self.spare = 0
        self.length = 0  # of the whole text: the position of the next token
        self._end = 0  # where the next key goes
        self._storage: Tensor | None = None  # (2, B, G, 2W, Dh)

    @property
    def nbytes(self) -> int:
        """The memory in bytes, 2 · B · G · 2W · Dh · bytes of a number."""
        x = self._storage
        return 0 if x is None else x.numel() * x.element_size()

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write T new keys and values, and return them after those that they may see.

        Args:
            key: (B, G, T, Dh).
            value: (B, G, T, Dh).

        Returns:
            keys and values, each (B, G, S, Dh), the newest last; S counts the T new
            tokens and up to W - 1 before them. With T > 1 a query may see too many of
            them: that is for a mask to hide, such as `sliding_window_mask(T, W, S)`.

        Raises:
            TypeError: they have another dtype than the cache.
            ValueError: they have another B, G or Dh, or want a gradient.
        """
        B, G, T, Dh = key.shape
        check_new(key, value, self._storage)
        if self._storage is None:
            self._storage = key.new_empty(2, B, G, 2 * self.window + self.spare, Dh)
        room = self._storage.shape[3]
        self.length += T
        begin = max(0, self._end - (self.window - 1))  # the oldest that is still seen
        if self._end + T <= room:
            self._storage[0, :, :, self._end : self._end + T] = key
            self._storage[1, :, :, self._end : self._end + T] = value
            self._end += T
            keys, values = self._storage[:, :, :, begin : self._end]
            return keys, values

        new = torch.stack((key, value))  # (2, B, G, T, Dh)
        oldest = max(0, begin - self.spare)
        both = torch.cat((self._storage[:, :, :, oldest : self._end], new), dim=3)
        S = both.shape[3]
        self._end = min(S, self.window - 1 + self.spare)
        self._storage[:, :, :, : self._end] = both[:, :, :, S - self._end :]
        keys, values = both[:, :, :, begin - oldest :]
        return keys, values

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        if self._storage is not None:
            self._storage = self._storage.index_select(1, rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these.

        Raises:
            TypeError: `length` is not an int.
            ValueError: it is below 0, so many tokens were never there, or of those that
                the next query sees some are gone: more than `spare` are forgotten.
        """
        check_truncation(length, self.length)
        end = self._end - (self.length - length)
        if end < min(length, self.window - 1):
            raise ValueError(
                f"length ({length}) is too short: of {self.length} tokens the oldest "
                f"are gone, and only spare = {self.spare} can be forgotten"
            )
        self.length, self._end = length, end

    def copy(self, max_len: int) -> "RollingCache":
        """Make a cache of its own with the same tokens; it has room for any number."""
        check_positive(max_len=max_len)
        other = RollingCache(self.window)
        other.spare, other.length, other._end = self.spare, self.length, self._end
        other._storage = None if self._storage is None else self._storage.clone()
        return other
