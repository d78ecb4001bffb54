"""Attention weights, kept while a model runs: every module returns one tensor.

B batch · H heads · T queries · S keys
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Lock, get_ident
from typing import Any

from torch import Tensor, nn
from torch.compiler import is_compiling

Keep = Callable[[Tensor], None]
LOCK = Lock()  # two threads may begin and end at once


class RecordedWeights(Mapping[nn.Module, Tensor]):
    """The weights (B, H, T, S) of each attention: `weights[model.blocks[0].attention]`.

    A name serves as well: `weights["blocks.0.attention"]`. Of an attention that ran
    several times it holds the weights of the last; one that did not run is missing.
    """

    def __init__(self, attentions: dict[str, nn.Module]) -> None:
        self._modules = attentions
        self._thread = get_ident()
        self._kept: dict[nn.Module, Tensor] = {}

    def __getitem__(self, key: nn.Module | str) -> Tensor:
        """Return the weights of an attention, given itself or its name in the model."""
        if isinstance(key, str):
            if key not in self._modules:
                known = ", ".join(self._modules)
                raise KeyError(f"{key!r} is no attention of the model: {known}")
            if self._modules[key] not in self._kept:
                raise KeyError(f"{key!r} has not run")
            key = self._modules[key]
        return self._kept[key]

    def __iter__(self) -> Iterator[nn.Module]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, attention: nn.Module, weights: Tensor) -> None:
        """Keep the weights of an attention in place of those before."""
        if is_compiling() or get_ident() == self._thread:
            self._kept[attention] = weights

    def by_name(self) -> dict[str, Tensor]:
        """Return {"encoder.blocks.0.attention": weights, …}, in the model's order."""
        modules = self._modules.items()
        return {name: self._kept[each] for name, each in modules if each in self._kept}


class Recorders(tuple[Keep, ...]):
    """Who keeps the weights of an attention while it is recorded: a copy is not."""

    def __deepcopy__(self, _: object) -> tuple[Keep, ...]:
        return ()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return tuple, ()


@contextmanager
def record_weights(model: nn.Module) -> Iterator[RecordedWeights]:
    """Keep the weights of every attention of a model while the block runs.

    torch's kernel returns no weights: each attention computes them by the formula
    meanwhile, beside the kernel. They are what `attention_weights` returns: before
    dropout, and with gradients where these are on. What a model computes stays. Only
    what this thread runs is kept: others may run the same model. An attention is each
    module whose class has `recorders`, such as `MultiHeadAttention`.
    """
    attentions: dict[str, Any] = {
        # torch.compile puts what it compiles below a name of its own
        name.replace("_orig_mod.", ""): module
        for name, module in model.named_modules(remove_duplicate=False)
        if hasattr(type(module), "recorders")
    }
    weights = RecordedWeights(attentions)
    keepers = {each: partial(weights.keep, each) for each in attentions.values()}
    with LOCK:
        for each, keep in keepers.items():
            each.recorders = Recorders((*each.recorders, keep))
    try:
        yield weights
    finally:
        with LOCK:
            for each, keep in keepers.items():  # a block around this one keeps its own
                each.recorders = Recorders(x for x in each.recorders if x is not keep)
