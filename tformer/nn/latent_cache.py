"""The cache of latent attention: one short vector for each token so far.

B batch · T new tokens · S tokens so far · R kv_rank · Dr rotary_dim
"""

from torch import Tensor

from tformer.checks import check_positive
from tformer.nn.cache import check_truncation


class LatentCache:
    """The latents and turned keys so far: R + Dr numbers a token, whatever H is.

    As `KeyValueCache`: the memory is taken when the first token comes, new ones are
    written in place, and it holds no gradients.

    Args:
        max_len: how many tokens there is room for.

    Raises:
        TypeError: `max_len` is not an int.
        ValueError: `max_len` is below 1.
    """

    def __init__(self, max_len: int) -> None:
        check_positive(max_len=max_len)
        self.max_len = max_len
        self.length = 0
        self._storage: Tensor | None = None  # (B, max_len, R + Dr)

    @property
    def nbytes(self) -> int:
        """The memory in bytes, B · max_len · (R + Dr) · bytes of a number."""
        x = self._storage
        return 0 if x is None else x.numel() * x.element_size()

    def append(self, new: Tensor) -> Tensor:
        """Write what T new tokens keep, (B, T, R + Dr); return all: (B, S, R + Dr).

        Raises:
            TypeError: it has another dtype than the cache.
            ValueError: it has another B or width, wants a gradient, or there is no
                room left.
        """
        B, T, width = new.shape
        if new.requires_grad:
            raise ValueError("a cache holds no gradients: use it under torch.no_grad()")
        if self._storage is None:
            self._storage = new.new_empty(B, self.max_len, width)
        B, _, width = self._storage.shape
        if new.shape != (B, T, width):
            raise ValueError(
                f"new must be (B, T, width) = ({B}, {T}, {width}) as in the cache, "
                f"not {tuple(new.shape)}"
            )
        if new.dtype != self._storage.dtype:
            raise TypeError(
                f"new is {new.dtype} but the cache holds {self._storage.dtype}"
            )
        if self.length + T > self.max_len:
            raise ValueError(
                f"the cache is full: it has room for max_len = {self.max_len} tokens, "
                f"holds {self.length}, and {T} more came"
            )
        self._storage[:, self.length : self.length + T] = new
        self.length += T
        return self._storage[:, : self.length]

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        if self._storage is not None:
            self._storage = self._storage.index_select(0, rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens; the next is written after these.

        Raises:
            TypeError: `length` is not an int.
            ValueError: it is below 0, or the cache holds fewer tokens.
        """
        check_truncation(length, self.length)
        self.length = length

    def copy(self, max_len: int) -> "LatentCache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""
        other = LatentCache(max_len)
        if self._storage is not None:
            other.append(self._storage[:, : self.length])
        return other
