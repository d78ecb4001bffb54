"""Changes of norms, to be tried.

D d_model
"""

from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from tformer.interop.compare.rotary_changes import Change, Hints
from tformer.nn.block import Block
from tformer.nn.norm import LayerNorm, RMSNorm, layer_norm, rms_norm

Norm = LayerNorm | RMSNorm
Formula = Callable[[Tensor], Tensor]
EPS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 1e-7)


class Computed(nn.Module):
    """A part that computes a formula."""

    def __init__(self, formula: Formula) -> None:
        super().__init__()
        self.formula = formula

    def forward(self, x: Tensor) -> Tensor:
        """Compute it."""
        return self.formula(x)


def norm_forms(norm: nn.Module, hints: Hints) -> Iterator[tuple[str, Formula]]:
    """Yield what a norm may be in its place, as functions of (..., D)."""
    yield "is left out", lambda x: x
    if not isinstance(norm, Norm):
        return
    old, bias = norm.eps, norm.bias if isinstance(norm, LayerNorm) else None
    plus_one = isinstance(norm, RMSNorm) and norm.plus_one
    learned = norm.gain() if isinstance(norm, RMSNorm) else norm.weight
    gain = torch.ones(1) if learned is None else learned
    layer = isinstance(norm, LayerNorm)

    def form(
        eps: float = old,
        gain: Tensor = gain,
        bias: Tensor | None = bias,
        layer: bool = layer,
    ) -> Formula:
        if layer:
            return lambda x: layer_norm(x, gain, bias, eps)
        return lambda x: rms_norm(x, gain, eps) + (0 if bias is None else bias)

    for eps in dict.fromkeys((*EPS, *(x for x in hints.floats if 0 < x < 0.2))):
        if eps != old:
            yield f"has eps {eps:g} in place of {old:g}", form(eps)
    if learned is None:
        pass
    elif not plus_one:
        yield "multiplies by 1 + weight in place of weight", form(gain=1 + gain)
    else:
        yield "multiplies by weight in place of 1 + weight", form(gain=gain - 1)
    if learned is not None:
        yield "has no weight", form(gain=torch.ones_like(gain))
    if bias is not None:
        yield "has no bias", form(bias=None)
    kinds = ("LayerNorm", "RMSNorm")
    told = f"is {kinds[layer]} in place of {kinds[not layer]}"
    yield told, form(layer=not layer)
    if layer:
        yield (
            "divides the squares by D - 1 in place of D",
            lambda x: bias_of((x - x.mean(-1, keepdim=True))
            * (x.var(-1, keepdim=True) + old).rsqrt() * gain, bias),
        )  # fmt: skip
        yield (
            "divides by std + eps, with the squares divided by D - 1",
            lambda x: bias_of((x - x.mean(-1, keepdim=True))
            / (x.std(-1, keepdim=True) + old) * gain, bias),
        )  # fmt: skip
    else:
        yield (
            "adds eps after the root",
            lambda x: x / (x.square().mean(-1, keepdim=True).sqrt() + old) * gain,
        )
        told = "divides by the length of x in place of its mean square's root"
        yield told, lambda x: x / (x.norm(dim=-1, keepdim=True) + old) * gain


def bias_of(x: Tensor, bias: Tensor | None) -> Tensor:
    """Add a bias, if there is one."""
    return x if bias is None else x + bias


def norm_changes(block: Block, names: Sequence[str], hints: Hints) -> Iterator[Change]:
    """Yield what may differ in these norms, in all of them alike."""
    forms = [norm_forms(cast(nn.Module, getattr(block, n)), hints) for n in names]
    for several in zip(*forms, strict=False):

        def change(block: Block, several: object = several) -> None:
            pairs = cast(Sequence[tuple[str, Formula]], several)
            for name, (_, formula) in zip(names, pairs, strict=True):
                setattr(block, name, Computed(formula))

        yield (
            f"{' and '.join(names)} each {several[0][0]}"
            if len(names) > 1
            else f"{names[0]} {several[0][0]}",
            change,
        )
