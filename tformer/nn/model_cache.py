"""The caches of a whole model: those of its layers, side by side."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tformer.nn.cache import KeyValueCache


class DecoderLayerCache:
    """The two caches of a decoder layer: what was written, and what is read.

    Keys and values of the memory are projected once, when the first token is decoded.

    Args:
        max_len: how many tokens of the target there is room for.
    """

    def __init__(self, max_len: int) -> None:
        self.target = KeyValueCache(max_len)  # of self-attention: grows with each token
        self.memory = KeyValueCache()  # of cross-attention


class DecoderCache:
    """The caches of all layers of a decoder, which `model.new_cache(max_len)` makes.

    Args:
        num_layers: number of layers N.
        max_len: how many tokens of the target there is room for.
    """

    def __init__(self, num_layers: int, max_len: int) -> None:
        self.layers = [DecoderLayerCache(max_len) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """How many tokens the model has seen: the position of the next one."""
        return self.layers[0].target.length

    @property
    def nbytes(self) -> int:
        """The memory of all layers, in bytes."""
        return sum(each.target.nbytes + each.memory.nbytes for each in self.layers)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from row rows[i]. Only rows of one source change places."""
        for layer in self.layers:
            layer.target.reorder(rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens of the target, in every layer."""
        for layer in self.layers:
            layer.target.truncate(length)

    def copy(self, max_len: int) -> "DecoderCache":
        """Make a cache of its own with the same tokens, and room for `max_len`.

        What was projected from a memory never changes, and is shared.
        """
        other = DecoderCache(len(self.layers), max_len)
        for new, layer in zip(other.layers, self.layers, strict=True):
            new.target, new.memory = layer.target.copy(max_len), layer.memory
        return other


class StackCache:
    """The caches of the layers of a `CausalLM`, which `model.new_cache(max_len)` makes.

    Args:
        layers: what each layer's attention makes of `new_cache(max_len)`: it has a
            `length`, which counts the tokens so far, `nbytes`, `reorder`,
            `truncate` and `copy`.
    """

    def __init__(self, layers: Sequence[Any]) -> None:
        self.layers = list(layers)

    @property
    def length(self) -> int:
        """How many tokens the model has seen: the position of the next one."""
        length: int = self.layers[0].length
        return length

    @property
    def nbytes(self) -> int:
        """The memory of all layers, in bytes."""
        return sum(each.nbytes for each in self.layers)

    def reorder(self, rows: Tensor) -> None:
        """Let row i go on from what was row rows[i], as a beam search needs."""
        for each in self.layers:
            each.reorder(rows)

    def truncate(self, length: int) -> None:
        """Forget all but the first tokens, in every layer.

        Raises:
            TypeError: `length` is not an int.
            ValueError: it is below 0, the cache holds fewer tokens, or a layer's cache
                cannot be cut back.
        """
        for each in self.layers:
            each.truncate(length)

    def copy(self, max_len: int) -> "StackCache":
        """Make a cache of its own with the same tokens, and room for `max_len`."""
        return StackCache([each.copy(max_len) for each in self.layers])
