"""Low-rank adapters (LoRA): a frozen matrix, and beside it two small ones to train.

I input features · O output features · r rank
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LoRALinear(nn.Module):
    """Compute x Wᵀ + b + s (x Aᵀ) Bᵀ: as a linear layer with the matrix W + s B A.

    Hu et al. 2021, arXiv:2106.09685, section 4.1, with s = α / r; or s = α / √r, which
    at one α keeps the size of s B A as r grows (rsLoRA, Kalajdzievski 2023,
    arXiv:2312.03732).
    B is zero at first, so the layer computes what it did. A is drawn from a normal
    distribution with standard deviation 1/√I: if A were zero too, no gradient would
    ever come to either.

    Args:
        base: the linear layer; W and b are frozen.
        rank: r.
        alpha: α; 2 r if not given, so that s is 2, or 2 √r with `root`.
        dropout: probability with which each entry of x is dropped on its way to A.
        root: s = α / √r in place of α / r.
    """

    scale: Tensor
    merged: Tensor | None

    def __init__(
        self,
        base: nn.Linear,
        rank: int,
        *,
        alpha: float | None = None,
        dropout: float = 0.0,
        root: bool = False,
    ) -> None:
        super().__init__()
        check_rank(base, rank)
        alpha = 2.0 * rank if alpha is None else alpha
        self.base = base.requires_grad_(False)
        like = base.weight.detach()
        self.down = nn.Parameter(like.new_empty(rank, base.in_features))  # A (r, I)
        self.up = nn.Parameter(like.new_zeros(base.out_features, rank))  # B (O, r)
        nn.init.normal_(self.down, std=base.in_features**-0.5)
        s = alpha / (math.sqrt(rank) if root else rank)
        self.register_buffer("scale", like.new_tensor(s))  # an adapter's file keeps it
        self.dropout = nn.Dropout(dropout)
        # W + s B A while it is merged. No file holds it, so that a state is the same
        # whether merged or not; whoever loads one while it is merged, merges anew.
        self.register_buffer("merged", None, persistent=False)
        self.register_load_state_dict_post_hook(_merge_again)  # type: ignore[no-untyped-call]

    @property
    def weight(self) -> Tensor:
        """W + s B A (O, I), for who reads the matrix and does not call the layer."""
        if self.merged is not None:
            return self.merged
        return self.base.weight + self.scale * self.up @ self.down

    @property
    def bias(self) -> Tensor | None:
        """That of the layer (O,), or None."""
        return self.base.bias

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., I) to (..., O)."""
        if self.merged is not None:
            return F.linear(x, self.merged, self.bias)
        small = F.linear(self.dropout(x), self.down)  # (..., r)
        added: Tensor = self.scale * F.linear(small, self.up)  # (..., O)
        return self.base(x) + added

    @torch.no_grad()
    def merge(self) -> None:
        """Compute with W + s B A, made once: one product, as before; W is kept."""
        self.merged = None
        self.merged = self.weight

    def unmerge(self) -> None:
        """Compute with W again, the very bits: W + s B A - s B A is rounded twice."""
        self.merged = None


def check_rank(base: nn.Linear, rank: int) -> None:
    """Raise a ValueError unless r is in [1, min(I, O)]."""
    most = min(base.in_features, base.out_features)
    if not 1 <= rank <= most:
        raise ValueError(f"rank ({rank}) must be in [1, {most}]")


def _merge_again(layer: nn.Module, _: object) -> None:
    """Merge what was loaded, where the layer is merged."""
    if isinstance(layer, LoRALinear) and layer.merged is not None:
        layer.merge()


def add_lora(
    model: nn.Module,
    rank: int,
    *,
    targets: Iterable[str] = ("q_proj", "v_proj"),
    alpha: float | None = None,
    dropout: float = 0.0,
    root: bool = False,
) -> list[str]:
    """Freeze a model, and put an adapter beside each linear layer of some names.

    `targets` are names of layers, or how they end: "q_proj" is each block's. All that
    are an `nn.Linear` and end so get an adapter, a `LoRALinear` with these options.
    Returns their names; where one cannot have an adapter the model is as it was.
    """
    for name, _ in _adapted(model):
        rule = "name all targets at once, or remove_lora first"
        raise ValueError(f"the model has adapters, such as {name}: {rule}")
    found: dict[str, nn.Linear] = {}
    for target in targets:
        named = {
            name: m
            for name, m in model.named_modules()
            if isinstance(m, nn.Linear) and f".{name}".endswith(f".{target}")
        }
        if not named:
            raise ValueError(f"targets: {target!r} names no nn.Linear of the model")
        found |= named
    _check_untied(model, found)
    for linear in found.values():
        check_rank(linear, rank)
    for p in model.parameters():
        p.requires_grad_(False)
    for name, linear in found.items():
        layer = LoRALinear(linear, rank, alpha=alpha, dropout=dropout, root=root)
        model.set_submodule(name, layer)
    return list(found)


def merge_lora(model: nn.Module) -> None:
    """Merge every adapter of a model into its matrix."""
    for _, layer in _adapted(model):
        layer.merge()


def unmerge_lora(model: nn.Module) -> None:
    """Take every adapter out of its matrix again: the bits are those of before."""
    for _, layer in _adapted(model):
        layer.unmerge()


@torch.no_grad()
def remove_lora(model: nn.Module) -> None:
    """Put the plain linear layers back, merged or not as they are now.

    The parameters have their old names again. They stay frozen. A quantised matrix
    cannot hold the sum: with one merged the model is left as it was.
    """
    adapted = list(_adapted(model))
    for name, layer in adapted:
        if layer.merged is not None and not isinstance(layer.base, nn.Linear):
            raise ValueError(f"{name} is merged and quantised: unmerge_lora first")
    for name, layer in adapted:
        if layer.merged is not None:
            layer.base.weight.copy_(layer.merged)
        model.set_submodule(name, layer.base)


def lora_state(model: nn.Module) -> dict[str, Tensor]:
    """Return what an adapter's file holds: A, B, scales, and what else is trained."""
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    learned |= {f"{name}.scale" for name, _ in _adapted(model)}
    return {n: x.detach() for n, x in model.state_dict().items() if n in learned}


def load_lora(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load what `lora_state` returned into a model with adapters of the same shapes."""
    ours, theirs = (
        {name: tuple(x.shape) for name, x in of.items()}
        for of in (lora_state(model), state)
    )
    for name in ours | theirs:
        found, wanted = (x.get(name, "missing") for x in (theirs, ours))
        if found != wanted:
            raise ValueError(f"{name} is {found} in the state, {wanted} in the model")
    model.load_state_dict(state, strict=False)


def _adapted(model: nn.Module) -> Iterator[tuple[str, LoRALinear]]:
    for name, module in model.named_modules():
        if isinstance(module, LoRALinear):
            yield name, module


def _check_untied(model: nn.Module, found: Mapping[str, nn.Linear]) -> None:
    """Raise if a layer, or its matrix, has another name in the model as well."""
    for name, linear in found.items():
        names = [
            f"{of}.{own}"
            for of, m in model.named_modules(remove_duplicate=False)
            for own, p in m.named_parameters(recurse=False)
            if p is linear.weight
        ]
        if len(names) > 1:
            tied = f"targets: the matrix of {name} is tied, {' = '.join(names)}"
            rule = "an adapter would change one, and merging it all of them"
            raise ValueError(f"{tied}: {rule}")
