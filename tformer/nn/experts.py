"""A mixture of experts: many feed-forward networks, of which each token uses a few.

B batch · T length · D d_model · E experts · k experts of a token · N tokens
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from tformer.nn.router import Router, Routing


class Experts(nn.Module):
    """Let each token use k of E networks: y = Σ wᵢ Eᵢ(x) over the chosen, and shared.

    Shazeer et al. 2017 (arXiv:1701.06538); as in Mixtral (arXiv:2401.04088), or with
    other arguments as in DeepSeek-V3 (arXiv:2412.19437). No token is dropped.

    Args:
        d_model: width D.
        num_experts: experts E.
        expert: makes an expert, a module that maps (M, D) to (M, D) for any M, 0 too;
            it is called E times. Such as `GatedFeedForward`, with a smaller width.
        shared: a further network, which every token uses with weight 1.
        shared_gate: maps (..., D) to (..., 1), whose sigmoid weighs the shared network
            (Qwen2-MoE, arXiv:2407.10671, and Qwen3-Next).
        **routing: top_k, scores, renormalise, scale and others: see `Router`.
    """

    def __init__(
        self,
        d_model: int,
        num_experts: int,
        expert: Callable[[], nn.Module],
        *,
        shared: nn.Module | None = None,
        shared_gate: nn.Module | None = None,
        **routing: object,
    ) -> None:
        super().__init__()
        make: Callable[..., Router] = Router
        self.router = make(d_model, num_experts, **routing)
        self.experts = nn.ModuleList(expert() for _ in range(num_experts))
        if shared is None and shared_gate is not None:
            raise ValueError("shared_gate needs shared")
        self.shared, self.shared_gate = shared, shared_gate

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map x (B, T, D) to (B, T, D), every position by its own experts.

        `mask` (B, T), False where a token is padding, is for `Router`'s balance alone.
        """
        y = mix_experts(x, self.experts, self.router(x, mask))
        if self.shared is None:
            return y
        if self.shared_gate is None:
            return y + self.shared(x)
        return y + torch.sigmoid(self.shared_gate(x)) * self.shared(x)


def mix_experts(x: Tensor, experts: Iterable[nn.Module], routing: Routing) -> Tensor:
    """Sum the outputs of the chosen experts, weighted; each sees its own tokens only.

    The gradient of an expert without a token is 0, and not None.
    """
    tokens = x.flatten(0, -2)  # (N, D)
    chosen, weights = routing.chosen.flatten(0, -2), routing.weights.flatten(0, -2)
    y = torch.zeros_like(tokens)
    for i, expert in enumerate(experts):
        token, place = torch.where(chosen == i)  # (M,), (M,)
        output = weights[token, place, None] * expert(tokens[token])  # (M, D)
        y.index_add_(0, token, output.to(y.dtype))
    return y.view_as(x)


@contextmanager
def record_routing(model: nn.Module) -> Iterator[dict[str, Routing]]:
    """Keep the routing of every router of a model, by its name, while the block runs.

    Of a router that ran several times it holds the last routing, with its gradients.
    """
    kept: dict[str, Routing] = {}

    def keep(name: str, _: nn.Module, __: object, routing: Routing) -> None:
        kept[name] = routing

    hooks = [
        module.register_forward_hook(partial(keep, name))
        for name, module in model.named_modules()
        if isinstance(module, Router)
    ]
    try:
        yield kept
    finally:
        for hook in hooks:
            hook.remove()


def active_parameters(model: nn.Module) -> int:
    """Count the parameters that one token uses: k of E experts, and all else."""
    count = sum(p.numel() for p in model.parameters())
    for module in model.modules():
        if isinstance(module, Experts):
            unused = module.router.num_experts - module.router.top_k
            count -= unused * sum(p.numel() for p in module.experts[0].parameters())
    return count
