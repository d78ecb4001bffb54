"""Muon for the matrices inside the layers, and AdamW for everything else."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import ParamsT

from tformer.checks import check_probability
from tformer.training.optimizer import adamw


def orthogonalise(matrix: Tensor, *, steps: int = 5) -> Tensor:
    """Bring the singular values of a matrix near 1: U S Vᵀ becomes about U Vᵀ.

    Newton-Schulz: each step puts a s + b s³ + c s⁵ in the place of every singular value
    s, by products of matrices alone. Jordan's a, b, c (2024,
    kellerjordan.github.io/posts/muon) raise small ones fast, and leave all that were
    not tiny between about 0.7 and 1.2.

    The matrix is of any shape (A, B).
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide / wide.norm().clamp(min=1e-7)  # no singular value is above the norm
    for _ in range(steps):
        square = x @ x.T  # of the shorter side
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide is matrix else x.T


class Muon(torch.optim.Optimizer):
    """Step by the orthogonalised running mean of the gradient; matrices only.

    M ← μ M + (1 − μ) G, U = orthogonalise(μ M + (1 − μ) G), and with W of shape (A, B)
    W ← (1 − η λ) W − 0.2 √max(A, B) η U.

    With an equal decay the same as `torch.optim.Muon(…,
    adjust_lr_fn="match_rms_adamw")`, but that one always computes in bfloat16, for
    which many CPUs have no instructions: there a step can take more than ten times as
    long. Here the precision is that of the matrix.

    At full rank the entries of U Vᵀ have the root mean square 1 / √max(A, B), so those
    of a step have 0.2 η. A step of AdamW has about the same (Liu et al. 2025,
    arXiv:2502.16982, section 2.2), and one learning rate η and one decay λ serve both.

    Args:
        params: matrices, or groups of them.
        lr: the learning rate η.
        weight_decay: λ, how much of a matrix is taken off, times the learning rate.
        momentum: μ, how much of the mean gradient each step keeps.

    Raises:
        ValueError: a parameter has not two axes, or a number is out of its range.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        *,
        weight_decay: float = 0.01,
        momentum: float = 0.95,
    ) -> None:
        if not lr >= 0 or not weight_decay >= 0:
            raise ValueError(
                f"lr ({lr}) and weight_decay ({weight_decay}) must be at least 0"
            )
        check_probability(momentum=momentum)
        settings = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum}
        super().__init__(params, settings)
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"params: Muon is for matrices, and one is {tuple(p.shape)}"
                    )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Make a step; return the loss of `closure`, if there is one."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            rate, keep = group["lr"], group["momentum"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
                mean = self.state[p]["momentum_buffer"]
                mean.lerp_(p.grad, 1 - keep)
                ahead = p.grad.lerp(mean, keep)  # one step ahead: Nesterov
                p.mul_(1 - rate * group["weight_decay"])
                length = 0.2 * max(p.shape) ** 0.5
                p.add_(orthogonalise(ahead), alpha=-rate * length)
        return loss


class MuonAdamW(torch.optim.Optimizer):
    """Muon and AdamW as one optimizer, a step of which is a step of each.

    Groups and state are those of the two together, so a training loop, a schedule and a
    checkpoint treat it as any other optimizer.
    """

    def __init__(self, muon: Muon, adamw: torch.optim.AdamW) -> None:
        self.both = (muon, adamw)
        super().__init__([*muon.param_groups, *adamw.param_groups], {})

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "both": self.both}

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Make a step of each; return the loss of `closure`, if there is one."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        muon, adamw = self.both
        first = len(muon.param_groups)
        muon.param_groups = self.param_groups[:first]
        adamw.param_groups = self.param_groups[first:]
        for optimizer in self.both:
            optimizer.state = self.state  # which is new once a checkpoint was loaded
            optimizer.step()
        return loss


def hidden_matrices(model: nn.Module) -> dict[str, nn.Parameter]:
    """Find the matrices inside the layers, by their names: what Muon is for.

    These are the weights of `nn.Linear` in any `nn.ModuleList`, as in the layers of a
    model, if they are not frozen. Embeddings and tables of positions are no
    `nn.Linear`, the matrix that makes the logits stands after the layers, and norms and
    biases are no matrices.
    """
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    inside = {
        id(module.weight)
        for layers in lists
        for module in layers.modules()
        if isinstance(module, nn.Linear)
    }
    return {
        name: p
        for name, p in model.named_parameters()
        if id(p) in inside and p.requires_grad
    }


def muon(
    model: nn.Module,
    *,
    matrices: Iterable[Tensor] | None = None,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    momentum: float = 0.95,
) -> MuonAdamW:
    """Make Muon for the matrices inside the layers, and AdamW for everything else.

    Muon gets these `matrices`, or `hidden_matrices(model)`. The other arguments are
    those of `adamw` and `Muon`, and as there the learning rate is 1: the schedule sets
    the real one.

    Raises:
        ValueError: there is no matrix for Muon; as `adamw` and `Muon`.
    """
    chosen = [*(hidden_matrices(model).values() if matrices is None else matrices)]
    if not chosen:
        raise ValueError(
            "matrices: the model has no nn.Linear in an nn.ModuleList; name what Muon "
            "shall train, or take adamw"
        )
    of_matrices = Muon(chosen, 1.0, weight_decay=weight_decay, momentum=momentum)
    of_the_rest = adamw(
        model, weight_decay=weight_decay, betas=betas, eps=eps, without=chosen
    )
    return MuonAdamW(of_matrices, of_the_rest)
