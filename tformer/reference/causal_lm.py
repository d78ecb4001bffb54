"""A language model of today in NumPy: embedding, blocks, a last norm, logits.

B batch · T length · D d_model · V vocabulary
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tformer.reference.block import Block
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.linear import Linear

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(eq=False)
class CausalLM:
    """Predict each next token of a sequence from the tokens up to it.

    The twin of `tformer.CausalLM` in `eval()`, of whole sequences.

    Args:
        embedding: makes vectors of ids, and logits if there is no `output`.
        blocks: in their order.
        config: has `logit_scale`, the factor of the logits, and `parts.logit_cap`, c
            in c · tanh(logit / c).
        positions: what is added to the embedded tokens, if anything is.
        norm: the last norm, if there is one.
        output: makes logits.
    """

    embedding: TokenEmbedding
    blocks: list[Block]
    config: Any
    positions: Map | None = None
    norm: Map | None = None
    output: Linear | None = None

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Score the next token at every position: ids (B, T) to logits (B, T, V)."""
        x = self.embedding(ids)  # (B, T, D)
        x = x if self.positions is None else self.positions(x)
        for block in self.blocks:
            x = block(x, is_causal=True)  # (B, T, D)
        x = x if self.norm is None else self.norm(x)
        logits = self.embedding.logits(x) if self.output is None else self.output(x)
        logits, c = self.config.logit_scale * logits, self.config.parts.logit_cap
        return logits if c is None else c * np.tanh(logits / c)
