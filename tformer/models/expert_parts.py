"""What the experts of a `CausalLM` are: how many, and how they are chosen."""

from dataclasses import dataclass

from tformer.checks import check_at_least_0, check_positive
from tformer.nn.router import check_routing


@dataclass(frozen=True, kw_only=True)
class ExpertParts:
    """In place of each feed-forward network, experts of its kind and its width.

    Args:
        num_experts: experts E of a layer.
        top_k: how many of them a token uses.
        num_shared: so many more, as one network, that every token uses.
        scores: "softmax" of all experts, or "sigmoid" of each.
        renormalise: divide the weights of a token by their sum.
        balance_rate: by how much a step moves the bias that balances the load.

    Raises:
        TypeError: a size is not an int, or `renormalise` not a bool.
        ValueError: a value is out of its range, or `scores` unknown.
    """

    num_experts: int
    top_k: int = 2
    num_shared: int = 0
    scores: str = "softmax"
    renormalise: bool = True
    balance_rate: float = 0.001

    def __post_init__(self) -> None:
        check_positive(num_experts=self.num_experts, top_k=self.top_k)
        check_at_least_0(num_shared=self.num_shared)
        check_routing(self.num_experts, self.top_k, self.scores)
        if not isinstance(self.renormalise, bool):
            kind = type(self.renormalise).__name__
            raise TypeError(f"renormalise must be a bool, not {kind}")
        if not 0 <= self.balance_rate < 1:
            raise ValueError(f"balance_rate ({self.balance_rate}) must be in [0, 1)")
