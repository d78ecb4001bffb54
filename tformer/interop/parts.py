"""What both directions of the converters share: copies of single parts.

A new module is made on the meta device, where it takes neither memory nor random
numbers, and is then given copies of the old one's parts.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tformer.checks import check_positive, check_probability
from tformer.fast.dropout import Dropout
from tformer.fast.linear import Linear
from tformer.nn.norm import LayerNorm

M = TypeVar("M", bound=nn.Module)
L = TypeVar("L", bound=nn.Linear)

# Of our layers and torch's: attentions, then each residual's norm and dropout.
ENCODER_ATTENTIONS = {"self_attn": "self_attn"}
ENCODER_RESIDUALS = {
    "self_attn_residual": ("norm1", "dropout1"),
    "feed_forward_residual": ("norm2", "dropout2"),
}
DECODER_ATTENTIONS = {"self_attn": "self_attn", "cross_attn": "multihead_attn"}
DECODER_RESIDUALS = {
    "self_attn_residual": ("norm1", "dropout1"),
    "cross_attn_residual": ("norm2", "dropout2"),
    "feed_forward_residual": ("norm3", "dropout3"),
}


def convert(module: nn.Module, converters: dict[type, Callable[[Any], Any]]) -> Any:
    """Convert a module by the converter of its kind."""
    for kind, converter in converters.items():
        if isinstance(module, kind):
            expect("module", module, kind)
            check_hooks(module)
            return converter(module)
    names = ", ".join(kind.__name__ for kind in converters)
    raise TypeError(f"module must be one of {names}, not {type(module).__name__}")


def expect(name: str, part: Any, *kinds: type[nn.Module]) -> Any:
    """Return the part if it is of one of these kinds and computes what that does."""
    forwards = [kind.forward for kind in kinds]
    if not isinstance(part, kinds) or type(part).forward not in forwards:
        raise ValueError(
            f"{name} ({type(part).__name__}) must be {kinds[0].__name__}, "
            "without a forward of its own"
        )
    return part


# Where torch keeps what somebody has hung on a module, which no copy would have.
_HOOKS = {
    "forward hook": "_forward_hooks",
    "forward pre-hook": "_forward_pre_hooks",
    "backward hook": "_backward_hooks",
    "backward pre-hook": "_backward_pre_hooks",
}


def check_hooks(module: nn.Module) -> None:
    """Raise unless a module and its parts compute what their classes say.

    Raises:
        ValueError: a part has a hook, or a `forward` of its own.
    """
    for name, part in module.named_modules():
        where = f"module.{name}" if name else "module"
        for kind, attribute in _HOOKS.items():
            for hook in getattr(part, attribute).values():
                called = getattr(hook, "__qualname__", type(hook).__qualname__)
                raise ValueError(
                    f"{where} has a {kind} ({called}), which would be lost: remove it"
                )
        if "forward" in vars(part):
            raise ValueError(
                f"{where} ({type(part).__name__}) must have no forward of its own"
            )


def copy_parameter(x: Tensor, *, of: Tensor | None = None) -> nn.Parameter:
    """Copy a parameter, or a part x `of` one, and what it says about gradients."""
    # A part does not say it itself: under torch.no_grad() it never wants a gradient.
    requires_grad = x.requires_grad if of is None else of.requires_grad
    return nn.Parameter(x.detach().clone(), requires_grad=requires_grad)


def as_before(old: nn.Module, new: M) -> M:
    """Put the new module into training or evaluation, as the old one is."""
    new.training = old.training
    return new


def copy_linear(name: str, old: Any, kind: type[L]) -> L:
    """Make a linear layer of this kind from one of torch's or ours."""
    expect(name, old, nn.Linear, Linear)
    with torch.device("meta"):
        new = kind(old.in_features, old.out_features, bias=old.bias is not None)
    new.weight = copy_parameter(old.weight)
    if old.bias is not None:
        new.bias = copy_parameter(old.bias)
    return as_before(old, new)


def copy_norm(name: str, old: Any, kind: type[nn.LayerNorm] | type[LayerNorm]) -> Any:
    """Make a norm of this kind from one of torch's or ours."""
    expect(name, old, nn.LayerNorm, LayerNorm)
    if old.weight is None:
        raise ValueError(f"{name}.elementwise_affine (False) must be True")
    if old.weight.ndim != 1:
        shape = tuple(old.weight.shape)
        raise ValueError(f"{name}.normalized_shape {shape} must be one width")
    with torch.device("meta"):
        new = kind(len(old.weight), old.eps, bias=old.bias is not None)
    new.weight = copy_parameter(old.weight)
    if old.bias is not None:
        new.bias = copy_parameter(old.bias)
    return as_before(old, new)


def copy_dropout(name: str, old: Any, kind: type[nn.Dropout]) -> nn.Dropout:
    """Make a dropout of this kind from one of torch's or ours."""
    expect(name, old, nn.Dropout, Dropout)
    check_probability(**{name: old.p})
    return as_before(old, kind(old.p))


def fill_stack(
    old: Any, new: Any, norm: Any, kind: type[nn.Module], convert: Any
) -> Any:
    """Give an empty stack the converted layers of another, and its norm."""
    check_positive(num_layers=len(old.layers))
    new.layers = as_before(
        old.layers,
        nn.ModuleList(
            convert(expect(f"layers.{i}", layer, kind))
            for i, layer in enumerate(old.layers)
        ),
    )
    new.norm = None if old.norm is None else copy_norm("norm", old.norm, norm)
    return as_before(old, new)
