"""A beginning that many texts share, read once.

B batch · P of the prefix
"""

from typing import Any

import torch
from torch import Tensor

from tformer.generate.evaluating import evaluating
from tformer.models.causal_lm import CausalLM
from tformer.models.gpt import GPT


class Prefix:
    """Ids that a model has read, and the cache that any number of texts go on from.

    A causal model computes keys and values of a token from that token and those before
    it. So they are the same whatever follows, and need not be computed again: `greedy`
    and `sample` take a prefix, and each of their texts begins with a copy of its cache.

    Args:
        model: a trained GPT or CausalLM; read again after its weights have changed.
        ids: what the texts begin with, (P,).

    Raises:
        ValueError: as the model's forward.
    """

    def __init__(self, model: GPT | CausalLM, ids: Tensor) -> None:
        self.model = model
        ids = torch.as_tensor(ids, device=model.embedding.weight.device)
        if ids.ndim != 1 or not len(ids):
            raise ValueError(f"ids must be (P,), and not empty, not {tuple(ids.shape)}")
        self._cache: Any = model.new_cache(len(ids))
        with evaluating(model), torch.no_grad():
            model(ids[None], cache=self._cache, last_only=True)

    @property
    def length(self) -> int:
        """P, how many ids were read."""
        return int(self._cache.length)

    @property
    def nbytes(self) -> int:
        """The memory that is kept, in bytes."""
        return int(self._cache.nbytes)

    def new_cache(self, rows: int, max_len: int) -> Any:
        """Make a cache for texts that go on from here.

        Args:
            rows: how many texts, B; each gets a copy.
            max_len: how many tokens there is room for, those of the prefix included.
        """
        cache = self._cache.copy(max_len)
        cache.reorder(torch.zeros(rows, dtype=torch.int64, device=self.device))
        return cache

    @property
    def device(self) -> torch.device:
        """Where the cache is."""
        return self.model.embedding.weight.device
