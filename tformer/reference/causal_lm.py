"""A language model in NumPy: embedding, blocks, a last norm, logits.

B batch · T length · D d_model · V vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tformer.reference.block import Block
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(eq=False)
class CausalLM:
    """Predict each next token of a sequence from the tokens up to it."""

    embedding: TokenEmbedding  # makes logits too, without `output`
    blocks: list[Block]
    embedding_norm: Map | None = None
    positions: Map | None = None  # added to the tokens
    norm: Map | None = None  # the last
    output: Linear | None = None
    logit_scale: float = 1.0
    logit_cap: float | None = None  # c

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Score the next token at every position: ids (B, T) to logits (B, T, V)."""
        x = self.states(ids)  # (B, T, D)
        logits = self.embedding.logits(x) if self.output is None else self.output(x)
        logits, c = self.logit_scale * logits, self.logit_cap
        return logits if c is None else c * np.tanh(logits / c)

    def states(self, ids: np.ndarray) -> np.ndarray:
        """Compute that from which the logits are made: (B, T) to (B, T, D)."""
        x = self.embedding(ids)  # (B, T, D)
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        x = x if self.positions is None else self.positions(x)
        for block in self.blocks:
            x = block(x, is_causal=True)  # (B, T, D)
        return x if self.norm is None else self.norm(x)
