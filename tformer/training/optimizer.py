"""The optimizer: Adam with decoupled weight decay, of matrices only."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def adamw(
    model: nn.Module,
    *,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    without: Iterable[Tensor] = (),
) -> torch.optim.AdamW:
    """Make AdamW (arXiv:1711.05101) with the paper's β₁ = 0.9, β₂ = 0.98, ε = 10⁻⁹.

    Vaswani et al. 2017, section 5.3. The paper has Adam, without decay. Here matrices
    decay, and biases and the norms' gains do not: a gain of 0 would switch a norm off.

    Args:
        model: whose parameters to train.
        weight_decay: how much of a matrix is taken off, times the learning rate.
        betas: how much of the mean gradient, and of its mean square, each step keeps.
        eps: added to the root of the mean square.
        without: parameters that another optimizer trains.

    Returns:
        The optimizer. Its own learning rate is 1: the schedule sets the real one.

    Raises:
        ValueError: `weight_decay` or `eps` is below 0, or a beta outside [0, 1).
    """
    others = {id(p) for p in without}
    learned = (p for p in model.parameters() if p.requires_grad)
    parameters = [p for p in learned if id(p) not in others]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    # fused: one pass over the memory for all parameters together. The decay is that of
    # the groups; torch checks it here, and not there.
    return torch.optim.AdamW(
        groups, lr=1.0, betas=betas, eps=eps, weight_decay=weight_decay, fused=True
    )
