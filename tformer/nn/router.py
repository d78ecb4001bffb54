"""The router of a mixture of experts: which experts each token uses, and their load.

B batch · T length · D d_model · E experts · k experts of a token · G groups of experts
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from tformer.checks import check_divisible, check_one_of, check_positive

SCORES: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": partial(torch.softmax, dim=-1),  # Mixtral, Qwen
    "sigmoid": torch.sigmoid,  # DeepSeek-V3, Llama 4
}


class Routing(NamedTuple):
    """Which experts the tokens use, and how much of each."""

    scores: Tensor  # (..., E): of every expert, with gradients
    chosen: Tensor  # (..., k): the numbers of the chosen experts
    weights: Tensor  # (..., k): of their outputs, with gradients


def route(
    logits: Tensor,
    top_k: int,
    *,
    scores: str = "softmax",
    bias: Tensor | None = None,
    renormalise: bool = True,
    scale: float = 1.0,
    groups: int = 1,
    top_groups: int | None = None,
) -> Routing:
    """Choose the k experts with the largest scores; their scores are the weights.

    Shazeer et al. 2017 (arXiv:1701.06538); with `bias` and `groups` DeepSeek-V3
    (arXiv:2412.19437), equations 13 to 16 and section 2.1.2. Half-precision logits are
    scored in float32.

    Args:
        logits: (..., E), the router's number for each expert.
        top_k: how many experts a token uses; the best comes first.
        scores: "softmax" over all experts, or "sigmoid", of each by itself.
        bias: (E,), added to the scores for the choice, and not in the weights.
        renormalise: divide the weights of a token by their sum.
        scale: factor of the weights.
        groups: cut the experts into so many groups of neighbours.
        top_groups: a token may use experts of so many groups; of all if not given.
    """
    check_routing(logits.shape[-1], top_k, scores, groups, top_groups)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    s = SCORES[scores](logits)  # (..., E)
    wanted = s if bias is None else s + bias  # (..., E)
    if top_groups is not None and top_groups < groups:
        wanted = hide_groups(wanted, groups, top_groups)
    chosen = wanted.topk(top_k).indices  # (..., k)
    weights = s.gather(-1, chosen)  # (..., k)
    if renormalise:
        total = weights.sum(-1, keepdim=True)
        weights = weights / total.clamp(min=1e-20)  # sigmoids may all be 0
    return Routing(s, chosen, scale * weights)


def hide_groups(scores: Tensor, groups: int, top_groups: int) -> Tensor:
    """Put −∞ for all experts outside of a token's best groups: (..., E) to (..., E).

    The score of a group is the sum of its two best (DeepSeek-V3, section 2.1.2). Not 0
    but −∞: with a bias below 0 an allowed expert may have a score below 0.
    """
    grouped = scores.view(*scores.shape[:-1], groups, -1)  # (..., G, E / G)
    best = grouped.topk(2).values.sum(-1).topk(top_groups).indices  # (..., top_groups)
    allowed = torch.zeros_like(grouped[..., 0], dtype=torch.bool)  # (..., G)
    allowed = allowed.scatter(-1, best, True)[..., None]  # (..., G, 1)
    return grouped.masked_fill(~allowed, -torch.inf).flatten(-2)


def expert_counts(chosen: Tensor, num_experts: int) -> Tensor:
    """Count how many tokens chose each expert: (..., k) to (E,), whole numbers."""
    return functional.one_hot(chosen, num_experts).flatten(0, -2).sum(0)


def load_balance_loss(scores: Tensor, chosen: Tensor) -> Tensor:
    """Compute E · Σᵢ fᵢ Pᵢ: 1 if all experts are used alike, E / k if only k are.

    Fedus et al. 2021 (arXiv:2101.03961), equations 4 to 6. fᵢ is the fraction of all
    choices that fell on expert i, Pᵢ the mean of its scores, and each sums to 1. For
    k > 1 that is DeepSeekMoE's (arXiv:2401.06066), equation 13. Only P has a gradient.
    Each layer's is added to the loss, times a small number.

    Args:
        scores: (..., E), not negative; those of a token are divided by their sum.
        chosen: (..., k). Leave padding out: `scores[mask]` and `chosen[mask]`.
    """
    counts = expert_counts(chosen, scores.shape[-1])
    f = counts.to(scores.dtype) / counts.sum()  # (E,)
    P = (scores / scores.sum(-1, keepdim=True)).flatten(0, -2).mean(0)  # (E,)
    return scores.shape[-1] * (f * P).sum()


class Router(nn.Module):
    """Score all E experts for each token of width D, and choose k, as `route` does.

    Args:
        bias: give the logits a bias, which the weights see too, as gpt-oss does.
        selection_bias: have a bias for the choice alone; Mixtral has none.
        balance_rate: by how much each backward pass in training moves `selection_bias`,
            up for experts with less than the mean load and down for the others (Wang et
            al. 2024, arXiv:2408.15664, algorithm 1); 0 leaves it as it is.
    """

    # `distribute` puts another function in its place, which counts in all processes.
    count = staticmethod(expert_counts)

    def __init__(
        self,
        d_model: int,
        num_experts: int,
        *,
        top_k: int = 2,
        scores: str = "softmax",
        renormalise: bool = True,
        scale: float = 1.0,
        groups: int = 1,
        top_groups: int | None = None,
        bias: bool = False,
        selection_bias: bool = True,
        balance_rate: float = 0.0,
    ) -> None:
        super().__init__()
        check_positive(d_model=d_model, num_experts=num_experts, top_k=top_k)
        check_routing(num_experts, top_k, scores, groups, top_groups)
        if not balance_rate >= 0:
            raise ValueError(f"balance_rate ({balance_rate}) must be at least 0")
        if balance_rate and not selection_bias:
            raise ValueError(f"balance_rate ({balance_rate}) needs a selection_bias")
        self.num_experts, self.top_k, self.scores = num_experts, top_k, scores
        self.renormalise, self.scale = renormalise, scale
        self.groups, self.top_groups = groups, top_groups
        self.balance_rate = balance_rate
        self.proj = nn.Linear(d_model, num_experts, bias=bias)
        # Without a gradient, as a choice has none; but saved with the model.
        begin = torch.zeros(num_experts) if selection_bias else None
        self.selection_bias = None if begin is None else nn.Parameter(begin, False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Routing:
        """Route each token of x (..., D); `mask` (...) is False where it is padding.

        Padding is routed as any token, but does not count as load.
        """
        shape = tuple(self.proj.weight.shape)  # (E, D)
        if x.shape[-1:] != shape[1:]:
            raise ValueError(
                f"x must have width {shape[1]}, as weight is {shape}, "
                f"not {tuple(x.shape)}"
            )
        # Files in 16 bits may hold a router in float32: then it scores in float32.
        logits = self.proj(x.to(self.proj.weight.dtype))  # (..., E)
        routing = route(
            logits,
            self.top_k,
            scores=self.scores,
            bias=self.selection_bias,
            renormalise=self.renormalise,
            scale=self.scale,
            groups=self.groups,
            top_groups=self.top_groups,
        )
        if self.training and self.balance_rate and logits.requires_grad:
            # Not before the backward pass: checkpointing computes this once more in it,
            # and must choose the same experts.
            chosen = routing.chosen
            logits.register_hook(lambda _: self.balance(chosen, mask))
        return routing

    @torch.no_grad()
    def balance(self, chosen: Tensor, mask: Tensor | None = None) -> None:
        """Move `selection_bias` by `balance_rate` against the load of these choices.

        chosen (..., k); where `mask` (...) is False a token is padding: no load.
        """
        if self.selection_bias is None:
            raise ValueError("balance needs a selection_bias, and this router has none")
        if mask is not None:
            chosen = chosen[mask]  # (N, k)
        counts = self.count(chosen, self.num_experts)  # (E,)
        missing = torch.sign(counts.sum() - self.num_experts * counts)  # -1, 0 or 1
        self.selection_bias.add_(missing, alpha=self.balance_rate)


def check_routing(
    num_experts: int,
    top_k: int,
    scores: str,
    groups: int = 1,
    top_groups: int | None = None,
) -> None:
    """Raise a ValueError unless a token can use k of E experts, scored like this."""
    check_one_of("scores", scores, SCORES)
    if not 1 <= top_k <= num_experts:
        raise ValueError(f"top_k ({top_k}) must be in [1, num_experts = {num_experts}]")
    check_positive(groups=groups)
    check_divisible(num_experts=num_experts, groups=groups)
    if top_groups is None:
        return
    if not 1 <= top_groups <= groups:
        raise ValueError(f"top_groups ({top_groups}) must be in [1, groups = {groups}]")
    each = num_experts // groups
    if top_groups < groups and each < 2:
        raise ValueError(f"groups ({groups}) must have two experts each, not {each}")
    if top_k > top_groups * each:
        held = f"top_groups ({top_groups}) hold {top_groups * each} experts"
        raise ValueError(f"{held}, but top_k is {top_k}")
