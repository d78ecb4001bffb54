"""A language model of today in NumPy: embedding, blocks, a last norm, logits.

B batch · T length · D d_model · V vocabulary
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from tformer.reference.block import Block
from tformer.reference.embedding import TokenEmbedding
from tformer.reference.linear import Linear
from tformer.reference.weights import Weights

Map = Callable[[np.ndarray], np.ndarray]


class CausalLM:
    """Predict each next token of a text from the tokens up to it.

    The twin of `tformer.CausalLM`, as it computes in `eval()`, of whole texts.

    Args:
        embedding: turns ids into vectors, and makes logits if there is no `output`.
        blocks: in their order.
        positions: what is added to the embedded tokens, if anything is.
        norm: the last norm, if there is one.
        output: makes logits.
        logit_scale: factor of the logits.
        logit_cap: bounds each logit: c · tanh(logit / c).
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        blocks: Sequence[Block],
        *,
        positions: Map | None = None,
        norm: Map | None = None,
        output: Linear | None = None,
        logit_scale: float = 1.0,
        logit_cap: float | None = None,
    ) -> None:
        self.embedding = embedding
        self.positions = positions
        self.blocks = list(blocks)
        self.norm = norm
        self.output = output
        self.logit_scale = logit_scale
        self.logit_cap = logit_cap

    @staticmethod
    def from_torch(module: Any, _: Weights) -> "CausalLM":
        """Make the twin of tformer's model, of the twins of what is in it."""
        from_torch = import_module("tformer.reference.interop").from_torch

        there = {name for name, _ in module.named_children()}
        optional = {
            name: from_torch(getattr(module, name))
            for name in {"positions", "norm", "output"} & there
        }
        return CausalLM(
            from_torch(module.embedding),
            [from_torch(block) for block in module.blocks],
            logit_scale=module.config.logit_scale,
            logit_cap=module.config.parts.logit_cap,
            **optional,
        )

    def __call__(self, ids: np.ndarray) -> np.ndarray:
        """Score the next token at every position: ids (B, T) to logits (B, T, V)."""
        x = self.embedding(ids)  # (B, T, D)
        if self.positions is not None:
            x = self.positions(x)
        for block in self.blocks:
            x = block(x)  # (B, T, D)
        x = x if self.norm is None else self.norm(x)
        logits = self.embedding.logits(x) if self.output is None else self.output(x)
        cap, logits = self.logit_cap, self.logit_scale * logits
        return logits if cap is None else cap * np.tanh(logits / cap)
