"""Attention weights, kept while a model runs: every module returns one tensor.

B batch · H heads · T queries · S keys
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from tformer.nn.attention import attention_weights, mix_values
from tformer.nn.attention_checks import check_values


class RecordedWeights(Mapping[nn.Module, Tensor]):
    """The weights (B, H, T, S) of each attention: `weights[model.layers[0].self_attn]`.

    A name serves as well: `weights["layers.0.self_attn"]`. Of an attention that ran
    several times it holds the weights of the last; one that did not run is missing.
    """

    def __init__(self, attentions: dict[str, nn.Module]) -> None:
        self._modules = attentions
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

    def by_name(self) -> dict[str, Tensor]:
        """Return {"encoder.layers.0.self_attn": weights, …}, in the model's order."""
        modules = self._modules.items()
        return {name: self._kept[each] for name, each in modules if each in self._kept}


@contextmanager
def record_weights(model: nn.Module) -> Iterator[RecordedWeights]:
    """Keep the weights of every attention of a model while the block runs.

    Attention is computed by the formula meanwhile, as torch's kernel returns no
    weights. They are what `attention_weights` returns: before dropout, and with
    gradients where these are on.

    Args:
        model: a `MultiHeadAttention` or `SelfAttention`, or whatever holds some: each
            module whose class has `attend`.

    Yields:
        `RecordedWeights`, filled by each forward: by module, or by its name.
    """
    attentions: dict[str, nn.Module] = {
        # torch.compile puts what it compiles below a name of its own
        name.replace("_orig_mod.", ""): module
        for name, module in model.named_modules(remove_duplicate=False)
        if hasattr(type(module), "attend")
    }
    weights = RecordedWeights(attentions)
    before: dict[Any, Any] = {
        each: vars(each).get("attend") for each in attentions.values()
    }
    for each, outer in before.items():
        keeps = [partial(weights._kept.__setitem__, each)]
        if outer is not None:  # a block around this one keeps them too
            keeps += outer.args[0]
        each.attend = partial(_attend_and_keep, keeps)
    try:
        yield weights
    finally:
        for each, outer in before.items():
            del each.attend
            if outer is not None:
                each.attend = outer


def _attend_and_keep(
    keeps: Iterable[Callable[[Tensor], None]],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    dropout_p: float = 0.0,
    **options: Any,
) -> Tensor:
    """Do what `scaled_dot_product_attention` does, and hand the weights to `keeps`."""
    weights = attention_weights(query, key, attn_mask, **options)  # (B, H, T, S)
    check_values(key, value, dropout_p)
    for keep in keeps:
        keep(weights)
    return mix_values(weights, value, dropout_p).to(query.dtype)
