"""A mixture of experts in NumPy: each token goes to its experts, one after the other.

B batch · T length · D d_model · E experts · k experts of a token · G groups of experts
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tformer.checks import check_divisible, check_one_of
from tformer.reference.attention import softmax
from tformer.reference.feed_forward import sigmoid
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]
SCORES: dict[str, Map] = {"softmax": softmax, "sigmoid": sigmoid}


class Routing(NamedTuple):
    """Which experts the tokens use, and how much of each."""

    scores: np.ndarray  # (..., E)
    chosen: np.ndarray  # (..., k)
    weights: np.ndarray  # (..., k)


def route(
    logits: np.ndarray,
    top_k: int,
    *,
    scores: str = "softmax",
    bias: np.ndarray | None = None,
    renormalise: bool = True,
    scale: float = 1.0,
    groups: int = 1,
    top_groups: int | None = None,
) -> Routing:
    """Choose the k experts with the largest scores; their scores are the weights.

    As `tformer.nn.route`; of equal scores the expert with the lower number wins.
    """
    check_one_of("scores", scores, SCORES)
    E = logits.shape[-1]
    if not 1 <= top_k <= E:
        raise ValueError(f"top_k ({top_k}) must be in [1, num_experts = {E}]")
    check_divisible(num_experts=E, groups=groups)
    s = SCORES[scores](logits)  # (..., E)
    wanted = s if bias is None else s + bias  # (..., E)
    if top_groups is not None and top_groups < groups:
        wanted = hide_groups(wanted, groups, top_groups)
    order = np.argsort(-wanted, axis=-1, kind="stable")
    chosen = order[..., :top_k]  # (..., k)
    weights = np.take_along_axis(s, chosen, axis=-1)  # (..., k)
    if renormalise:
        weights = weights / weights.sum(-1, keepdims=True).clip(min=1e-20)
    return Routing(s, chosen, scale * weights)


def hide_groups(scores: np.ndarray, groups: int, top_groups: int) -> np.ndarray:
    """Put −∞ for all experts outside of a token's best groups: (..., E) to (..., E).

    The score of a group is the sum of its two best experts.
    """
    grouped = scores.reshape(*scores.shape[:-1], groups, -1)  # (..., G, E / G)
    of_group = np.sort(grouped, axis=-1)[..., -2:].sum(-1)  # (..., G)
    worst = np.argsort(-of_group, axis=-1, kind="stable")[..., top_groups:]
    hidden = grouped.copy()
    np.put_along_axis(hidden, worst[..., None], -np.inf, axis=-2)
    return hidden.reshape(scores.shape)


def expert_counts(chosen: np.ndarray, num_experts: int) -> np.ndarray:
    """Count how many tokens chose each expert: (..., k) to (E,), whole numbers."""
    return np.bincount(chosen.ravel(), minlength=num_experts)


def load_balance_loss(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Compute E · Σᵢ fᵢ Pᵢ: 1 if all experts are used alike, E / k if only k are."""
    E = scores.shape[-1]
    counts = expert_counts(chosen, E)
    f = (counts / counts.sum()).astype(scores.dtype)  # (E,)
    scores = scores / scores.sum(-1, keepdims=True)
    P = scores.reshape(-1, E).mean(0)  # (E,)
    return np.asarray(E * (f * P).sum())


@dataclass(eq=False)
class Router:
    """Score all experts for each token, and choose k."""

    proj: Linear  # x (..., D) to logits (..., E)
    selection_bias: np.ndarray | None = None  # (E,), for the choice only
    top_k: int = 2  # as in `route`, and so are the others
    scores: str = "softmax"
    renormalise: bool = True
    scale: float = 1.0
    groups: int = 1
    top_groups: int | None = None

    def __call__(self, x: np.ndarray) -> Routing:
        """Route each token of x (..., D)."""
        return route(
            self.proj(x),
            self.top_k,
            scores=self.scores,
            bias=self.selection_bias,
            renormalise=self.renormalise,
            scale=self.scale,
            groups=self.groups,
            top_groups=self.top_groups,
        )


@dataclass(eq=False)
class Experts:
    """Let each token use k of E networks: y = Σ wᵢ Eᵢ(x) over the chosen."""

    router: Router
    experts: list[Map]  # E of them: (..., D) to (..., D)
    shared: Map | None = None  # a further one for every token
    shared_gate: Map | None = None  # (..., D) to (..., 1): its weight is the sigmoid

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Map x (B, T, D) to (B, T, D), every position by its own experts."""
        _, chosen, weights = self.router(x)
        y = np.zeros_like(x)
        for at in np.ndindex(x.shape[:-1]):  # one token
            for i, weight in zip(chosen[at], weights[at], strict=True):
                y[at] += weight * self.experts[i](x[at])
        if self.shared is None:
            return y
        weight = 1 if self.shared_gate is None else sigmoid(self.shared_gate(x))
        return y + weight * self.shared(x)
